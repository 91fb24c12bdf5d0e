// What a trace log says, gathered: every section of an analysis is made from these tables and none
// goes back to the file. Tables of two parts of a log merge into those of the whole, so that parts
// can be read side by side. Each duration is kept once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/analyze/name_table.h"
#include "report/analyze/record_scan.h"
#include "report/analyze/samples.h"

namespace tinyvllm {

// What a GpuOpCompleted record is about, by its name: "…/cb_wait" and "…/cb_gpu" are not ops.
enum class OpKind : uint8_t { kKernel, kWait, kCommandBuffer };

// In how many steps something was called.
struct StepCount {
  int64_t steps = 0;
  int64_t last = -1;

  void add(int64_t step) { steps += step != last, last = step; }
  void add(const StepCount& later) { steps += later.steps; }
};

// All calls under one op_name, "Generation Loop/block_3/linear".
struct OpSeries {
  OpKind kind = OpKind::kKernel;
  std::string part;   // the last step of the path, without a block's number: "linear"
  std::string phase;  // "prefill", "decode", or "" where the log does not say
  int64_t layer = -1;
  bool is_matmul = false;
  StepCount steps;
  Samples samples;
};

// All products of one shape by one backend, "op=qkv | batch=1 | m=1 | n=960 | k=576 | tA=0 | tB=1",
// for one part of the model in one phase.
struct MatmulSeries {
  std::string op, shape, backend, part, phase;
  int64_t m = 0, n = 0, k = 0;
  StepCount steps;
  Samples samples;
};

// Calls of one op by one kernel in one phase: what they moved and did.
struct OpCost {
  std::string part, phase, dtype, kernel, backend;
  int64_t calls = 0;
  int64_t ns = 0;
  double bytes = 0;
  double flops = 0;
};

struct StepRow {
  std::string phase;
  int64_t prefill_tokens = 0, decode_tokens = 0, sequences = 0, budget = 0;
  int64_t waiting = 0, running = 0, preempted = 0;
  int64_t end_ns = 0, duration_ns = 0;
  int64_t schedule_ns = 0, forward_ns = 0, sample_ns = 0, deliver_ns = 0;
  int64_t op_ns = 0, wait_ns = 0;  // sums over its GpuOpCompleted records
  int64_t blocks_used = 0, blocks_total = 0;
};

struct RequestRow {
  std::string reason;  // "" until it finished
  int64_t added_ns = 0, finished_ns = 0;
  int64_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, preemptions = 0;
  int64_t queue_ns = 0, prefill_ns = 0, ttft_ns = 0, decode_ns = 0, e2e_ns = 0;
};

struct EventType {
  int64_t count = 0;
  bool known = false;
};

// The members of one record, "breakdown.attention" for those of an object inside it.
using Facts = std::map<std::string, std::string, std::less<>>;
double fact(const Facts& facts, std::string_view key, double fallback = 0);

class Trace {
 public:
  void add(const Record& record);
  void take(Trace&& later);

  std::vector<std::string> parts;  // files it was read from
  ScanCounts counts;
  int64_t events = 0;
  int64_t dropped = 0;
  int64_t first_ns = -1, last_ns = 0;  // timestamps seen
  NameTable<EventType> types;
  NameTable<int64_t> selected_backend, selected_reason, selected_op;
  NameTable<OpSeries> ops;                  // by op_name
  NameTable<NameTable<Samples>> internals;  // parent → kernel
  NameTable<MatmulSeries> matmuls;
  NameTable<OpCost> costs;
  NameTable<Facts> latest;  // the last record of each type of which one says it all
  std::map<int64_t, StepRow> steps;
  std::map<std::string, RequestRow, std::less<>> requests;

 private:
  void add_op(const Record& record);
  bool add_matmul(const OpSeries& series, const Fields& data, int64_t step, int64_t ns);
  void add_cost(const OpSeries& series, const Fields& data, int64_t ns);
  void add_step(const Record& record);
  void add_request(const Record& record);

  std::string key_;  // room to build names in
};

// Reads a log on all cores, with the parts that follow it (FILE.1, FILE.2, …) when its writer began
// new ones. `progress(done, total)` is called on the calling thread.
using Progress = std::function<void(int64_t done, int64_t total)>;
Result<Trace> read_trace(const std::string& path, const Progress& progress = {});

// Every record of the same files once more, in their order.
Status scan_again(const Trace& trace, const LogFile::Visit& visit, const Progress& progress = {});

}  // namespace tinyvllm
