// What a trace is made of. A record says when something happened, under which span, and what it
// was: one of the events below, each a few numbers and literals, so that noting one costs the step
// little; trace_format.h makes JSON of it later, on another thread. An event names its fields once,
// in `fields`; docs/trace.schema.json says the same of the lines.
//
// Character pointers are literals or interned by the tracer: they outlive every record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/thread_pool.h"
#include "telemetry/ledger.h"

namespace tinyvllm {

// How much is noted: nothing, a step's own records, every op call, what happens inside an op.
enum class TraceLevel : uint8_t { kOff, kStep, kOp, kKernel };
const char* level_name(TraceLevel level);
std::optional<TraceLevel> level_from_name(std::string_view name);

using SpanId = uint64_t;  // from 1; 0 is none

struct Micros {  // nanoseconds, to be written as microseconds
  int64_t ns = 0;
};

// GpuOpCompleted: an op ran.
struct OpCompleted {
  OpCall call;
  uint64_t step = 0;
  const char* backend = "";  // "cpu-avx2"
  int threads = 0;
};

// GpuOpCompleted of the whole device: "cb_gpu", a step's forward, or "cb_wait", how long its
// threads stood at barriers.
struct DeviceTime {
  const char* name = "";
  Phase phase = Phase::kDecode;
  uint64_t step = 0;
  const char* backend = "";
};

// InternalKernelCompleted: a part of the engine's own work. "{}" in the name is the layer.
struct PartCompleted {
  const char* parent = "";  // "generation_loop"
  const char* name = "";    // "block_{}_total"
  int layer = -1;
  uint64_t step = 0;
};

// GpuKernelDispatched and two InternalKernelCompleted: a loop that an op had the threads run.
struct Loop {
  OpCall call;  // the op's
  uint64_t step = 0;
  const char* backend = "";
  LoopTimes times;
};
using LoopCompleted = std::unique_ptr<Loop>;  // large and rare: other records stay small

struct StepPlanned {
  static constexpr const char* kType = "StepPlan";
  static constexpr const char* kSpan = "step";
  uint64_t step = 0;
  int prefill_tokens = 0, decode_tokens = 0, sequences = 0, budget = 0, waiting = 0, running = 0;
  uint64_t preempted = 0;  // so far
  Micros schedule;

  void fields(auto&& field) const {
    field("step", step);
    field("prefill_tokens", prefill_tokens);
    field("decode_tokens", decode_tokens);
    field("sequences", sequences);
    field("budget", budget);
    field("waiting", waiting);
    field("running", running);
    field("preempted", preempted);
    field("schedule_us", schedule);
  }
};

// The four parts lie within the step one after the other; what is left is the engine's own. Forward
// and sampling of a device that works on its own are its times: they may lie beside the host's.
struct StepCompleted {
  static constexpr const char* kType = "StepCompleted";
  static constexpr const char* kSpan = "step";
  uint64_t step = 0;
  Phase phase = Phase::kDecode;
  Micros schedule, forward, sample, deliver;

  void fields(auto&& field) const {
    field("step", step);
    field("phase", phase_name(phase));
    field("schedule_us", schedule);
    field("forward_us", forward);
    field("sample_us", sample);
    field("deliver_us", deliver);
  }
};

// What a step's forward had to move: every weight once, the KV it read and wrote.
struct ForwardStep {
  static constexpr const char* kType = "ForwardStep";
  uint64_t step = 0;
  int tokens = 0;
  Phase phase = Phase::kDecode;
  uint64_t weight_bytes = 0, kv_read_bytes = 0, kv_written_bytes = 0;
};

struct KvBlocks {
  static constexpr const char* kType = "KvBlocks";
  static constexpr const char* kSpan = "step";
  uint64_t step = 0;
  int used = 0, cached = 0, free = 0, total = 0;
  uint64_t preempted = 0;  // so far

  void fields(auto&& field) const {
    field("step", step);
    field("used", used);
    field("cached", cached);
    field("free", free);
    field("total", total);
    field("preempted", preempted);
  }
};

struct PrefixCache {  // so far; written as PrefixCache and as ResourceCacheSummary
  static constexpr const char* kType = "PrefixCache";
  uint64_t queries = 0, hits = 0, tokens_queried = 0, tokens_hit = 0;
  uint64_t size = 0;  // blocks that can be found again

  void fields(auto&& field) const {
    field("queries", queries);
    field("hits", hits);
    field("tokens_queried", tokens_queried);
    field("tokens_hit", tokens_hit);
  }
};

struct CacheAccess {  // ResourceCacheAccess: a sequence asks for the prefix of its prompt
  uint64_t sequence = 0;
  uint64_t bytes = 0;  // found
};

struct RequestAdded {
  static constexpr const char* kType = "RequestAdded";
  static constexpr const char* kSpan = "request";
  uint64_t request = 0;
  int64_t prompt_tokens = 0;
  int max_tokens = 0, n = 0;

  void fields(auto&& field) const {
    field("request_id", request);
    field("prompt_tokens", prompt_tokens);
    field("max_tokens", max_tokens);
    field("n", n);
  }
};

struct RequestFinished {
  static constexpr const char* kType = "RequestFinished";
  static constexpr const char* kSpan = "request";
  uint64_t request = 0;
  uint32_t answer = 0;
  const char* reason = "";
  int prompt_tokens = 0, output_tokens = 0, cached_tokens = 0;
  Micros queue, prefill, ttft, decode, e2e;
  int preemptions = 0;

  void fields(auto&& field) const {
    field("request_id", request);
    field("answer", answer);
    field("reason", reason);
    field("prompt_tokens", prompt_tokens);
    field("output_tokens", output_tokens);
    field("cached_tokens", cached_tokens);
    field("queue_us", queue);
    field("prefill_us", prefill);
    field("ttft_us", ttft);
    field("decode_us", decode);
    field("e2e_us", e2e);
    field("preemptions", preemptions);
  }
};

struct RecordsDropped {
  static constexpr const char* kType = "RecordsDropped";
  static constexpr const char* kSpan = "run";
  uint64_t count = 0;

  void fields(auto&& field) const { field("count", count); }
};

// Whatever happens a few times in a run and is no fixed set of numbers: its JSON is made at once.
struct Note {
  const char* type = "";
  std::string data;  // an object
};

using TraceEvent = std::variant<OpCompleted, DeviceTime, PartCompleted, LoopCompleted, StepPlanned,
                                StepCompleted, ForwardStep, KvBlocks, PrefixCache, CacheAccess,
                                RequestAdded, RequestFinished, RecordsDropped, Note>;

struct TraceRecord {
  TraceLevel level = TraceLevel::kStep;
  int64_t begin_ns = 0;  // of the steady clock; a moment ends when it begins
  int64_t end_ns = 0;
  SpanId span = 0;
  SpanId parent = 0;
  TraceEvent event;
};

}  // namespace tinyvllm
