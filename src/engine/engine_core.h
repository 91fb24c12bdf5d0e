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
#include "engine/step_trace.h"
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
  int preemptions = 0;                            // so far
  std::string error;                              // with kError
  std::chrono::steady_clock::time_point started;  // when a step first computed for it
  std::chrono::steady_clock::time_point time;     // when this was known
};

class EngineCore {
 public:
  EngineCore(Runner& runner, BlockManager& blocks, const SchedulerConfig& config, int depth,
             Tracer* tracer = nullptr, const MemoryFigures& memory = {})
      : runner_(runner),
        blocks_(blocks),
        scheduler_(config, blocks),
        depth_(depth),
        budget_(config.max_num_batched_tokens),
        trace_(tracer, memory) {}

  const Scheduler& scheduler() const { return scheduler_; }
  Status add(Request request);
  void abort(SequenceId sequence);
  bool has_work() const { return scheduler_.has_work() || !in_flight_.empty(); }

  std::vector<SequenceOutput> step();

  // A step and the delivery of what it brought, as one in the trace; without it a step is not
  // traced.
  class Iteration {
   public:
    explicit Iteration(EngineCore& core) : core_(core) { core.trace_.begin(core.steps_ + 1); }
    ~Iteration() { core_.trace_.end(core_.blocks_, core_.scheduler_); }
    Iteration(const Iteration&) = delete;
    Iteration& operator=(const Iteration&) = delete;

   private:
    EngineCore& core_;
  };
  TraceContext& trace() { return trace_.context(); }

  EngineStats stats() const;

 private:
  struct InFlight {
    Ticket ticket = 0;
    uint64_t step = 0;
    Phase phase = Phase::kDecode;
    std::vector<std::pair<SequenceId, bool>> sequences;  // and whether they sample
  };

  void submit();
  std::vector<SequenceOutput> commit(const InFlight& step);
  SequenceOutput commit(SequenceId sequence, const SampledToken* token, const std::string& error);

  Runner& runner_;
  BlockManager& blocks_;
  Scheduler scheduler_;
  const int depth_;
  const int budget_;  // tokens of a step
  StepTrace trace_;
  StepPlan plan_;  // keeps its capacity from step to step
  std::deque<InFlight> in_flight_;
  std::unordered_map<SequenceId, std::chrono::steady_clock::time_point> started_;
  uint64_t steps_ = 0;
};

}  // namespace tinyvllm
