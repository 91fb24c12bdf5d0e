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
#include "tinyvllm/engine_options.h"

namespace tinyvllm {

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
