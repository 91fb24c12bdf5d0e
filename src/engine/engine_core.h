// The engine in tokens: a model on a device, requests in, sampled tokens out. One thread owns it. A
// step is the whole of serving: schedule, submit, wait, commit; with `depth` 1 a step is planned
// and submitted before the one ahead of it is waited for, so that a device never idles for the
// host.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "device/runtime.h"
#include "engine/runner.h"
#include "kv/block_manager.h"
#include "sched/scheduler.h"

namespace tinyvllm {

struct EngineOptions {
  // "dummy": random weights in the shapes that a preset or a config.json gives, of type `dtype`.
  std::string load_format = "auto";
  std::string dtype = "F16";
  int max_model_len = 0;  // 0: the context the model was trained for, or what memory allows
  int max_num_batched_tokens = 512;
  int max_num_seqs = 256;
  int block_size = 16;
  size_t kv_cache_memory = 0;  // bytes; 0: from the memory that is available
  bool enable_prefix_caching = true;
  int depth = 0;  // steps submitted ahead
};

struct SequenceOutput {
  SequenceId sequence = 0;
  std::vector<SampledToken> tokens;  // new ones, in order
  std::vector<ScoredToken> scored;   // of the prompt, in order
  FinishReason finish = FinishReason::kNone;
  int cached_tokens = 0;                          // of the prompt, found in the prefix cache
  std::string error;                              // with kError
  std::chrono::steady_clock::time_point started;  // when a step first computed for it
  std::chrono::steady_clock::time_point time;     // when this was known
};

struct EngineStats {
  int running = 0;
  int waiting = 0;
  int used_blocks = 0;
  int total_blocks = 0;
  uint64_t preemptions = 0;
  uint64_t steps = 0;
  PrefixStats prefix;
};

class EngineCore {
 public:
  EngineCore(Runner& runner, BlockManager& blocks, SchedulerConfig config, int depth)
      : runner_(runner), blocks_(blocks), scheduler_(std::move(config), blocks), depth_(depth) {}

  const Scheduler& scheduler() const { return scheduler_; }
  Status add(Request request) { return scheduler_.add(std::move(request)); }
  void abort(SequenceId sequence);
  bool has_work() const { return scheduler_.has_work() || !in_flight_.empty(); }

  std::vector<SequenceOutput> step();

  EngineStats stats() const;

 private:
  struct InFlight {
    Ticket ticket = 0;
    std::vector<std::pair<SequenceId, bool>> sequences;  // and whether they sample
  };

  void submit();
  std::vector<SequenceOutput> commit(const InFlight& step);
  SequenceOutput commit(SequenceId sequence, const SampledToken* token, const std::string& error);

  Runner& runner_;
  BlockManager& blocks_;
  Scheduler scheduler_;
  const int depth_;
  StepPlan plan_;  // keeps its capacity from step to step
  std::deque<InFlight> in_flight_;
  std::unordered_map<SequenceId, std::chrono::steady_clock::time_point> started_;
  uint64_t steps_ = 0;
};

}  // namespace tinyvllm
