// The engine's side of the trace: what a step planned, how long its parts took, and what state the
// caches were in after it. Kept by EngineCore, on its thread; does nothing while nobody listens.
#pragma once

#include "engine/memory_figures.h"
#include "kv/block_manager.h"
#include "sched/scheduler.h"
#include "telemetry/trace_context.h"

namespace tinyvllm {

Phase phase_of(const StepPlan& plan);  // prefill when a sequence is fed several tokens

class StepTrace {
 public:
  StepTrace(Tracer* tracer, const MemoryFigures& memory) : tracer_(tracer), memory_(memory) {}

  // An iteration of the engine's loop: begun by whoever calls `step`, ended after delivery. The
  // level that holds at its beginning holds for all of it.
  void begin(uint64_t step);
  void end(const BlockManager& blocks, const Scheduler& scheduler);

  // The step's own span; off outside of an iteration.
  TraceContext& context() { return context_; }

  void planned(const StepPlan& plan, const Scheduler& scheduler, int budget, int64_t schedule_ns);
  void started(const SequencePlan& sequence);  // its first step: the cache gave it `position`
  void completed(uint64_t step, Phase phase, const StepResult& result);
  void decided();  // from here on it is delivery

 private:
  void log_caches(const BlockManager& blocks, const Scheduler& scheduler);
  void add(TraceEvent event);  // now, of the step's span

  Tracer* const tracer_;
  const MemoryFigures memory_;
  TraceContext context_;
  SpanId span_ = 0;
  int64_t begin_ns_ = 0;
  int64_t decided_ns_ = 0;
  bool did_something_ = false;
  StepCompleted done_;
  PrefixCache prefix_;
  uint64_t steps_ = 0;  // traced
};

}  // namespace tinyvllm
