#include "engine/step_trace.h"

namespace tinyvllm {
namespace {

// Reading the process's memory takes some 10 µs: too much for every step.
constexpr uint64_t kStepsPerMemory = 64;

}  // namespace

Phase phase_of(const StepPlan& plan) {
  for (const SequencePlan& sequence : plan.sequences) {
    if (sequence.num_tokens > 1) return Phase::kPrefill;
  }
  return Phase::kDecode;
}

void StepTrace::begin(uint64_t step) {
  if (tracer_ == nullptr || !tracer_->on(TraceLevel::kStep)) return;
  span_ = tracer_->new_span();
  const TraceLevel level = tracer_->level();
  // Inside ops the threads' times are those of the slower clock: at level kernel all are.
  const FastClock clock = level == TraceLevel::kOp ? FastClock::set() : FastClock();
  context_ = {
      .tracer = tracer_, .level = level, .parent = span_, .step = step, .host_clock = clock};
  did_something_ = false;
  done_ = {};
  begin_ns_ = decided_ns_ = now_ns();
}

void StepTrace::add(TraceEvent event) {
  const int64_t now = now_ns();
  tracer_->add({TraceLevel::kStep, now, now, span_, Tracer::kRun, std::move(event)});
}

void StepTrace::planned(const StepPlan& plan, const Scheduler& scheduler, int budget,
                        int64_t schedule_ns) {
  if (!context_.on(TraceLevel::kStep)) return;
  StepPlanned planned{.step = context_.step,
                      .sequences = static_cast<int>(plan.sequences.size()),
                      .budget = budget,
                      .waiting = scheduler.num_waiting(),
                      .running = scheduler.num_running(),
                      .preempted = scheduler.num_preemptions(),
                      .schedule = {schedule_ns}};
  for (const SequencePlan& sequence : plan.sequences) {
    (sequence.num_tokens > 1 ? planned.prefill_tokens : planned.decode_tokens) +=
        sequence.num_tokens;
  }
  done_.schedule = planned.schedule;
  did_something_ = true;
  add(planned);
}

void StepTrace::started(const SequencePlan& sequence) {
  if (!context_.on(TraceLevel::kStep)) return;
  const auto tokens = static_cast<uint64_t>(sequence.position);
  prefix_.queries += 1;
  prefix_.hits += tokens > 0 ? 1 : 0;
  add(CacheAccess{sequence.sequence, tokens * memory_.kv_token_bytes});
}

void StepTrace::completed(uint64_t step, Phase phase, const StepResult& result) {
  if (!context_.on(TraceLevel::kStep)) return;
  did_something_ = true;
  done_.step = step;
  done_.phase = phase;
  done_.forward = {result.forward_ns};
  done_.sample = {result.sample_ns};
}

void StepTrace::decided() {
  if (context_.on(TraceLevel::kStep)) decided_ns_ = now_ns();
}

void StepTrace::log_caches(const BlockManager& blocks, const Scheduler& scheduler) {
  const BlockPool& pool = blocks.pool(0);
  KvBlocks state{.step = context_.step,
                 .used = blocks.used_blocks(),
                 .cached = pool.idle(),
                 .free = pool.available() - pool.idle(),
                 .total = blocks.total_blocks(),
                 .preempted = scheduler.num_preemptions()};
  add(state);
  const PrefixStats& stats = blocks.prefix_stats();
  if (stats.queried_tokens != prefix_.tokens_queried) {
    prefix_.tokens_queried = stats.queried_tokens;
    prefix_.tokens_hit = stats.hit_tokens;
    prefix_.size = static_cast<uint64_t>(pool.idle());
    add(prefix_);
  }
  if (steps_++ % kStepsPerMemory == 0) {
    const auto block = static_cast<uint64_t>(blocks.block_size()) * memory_.kv_token_bytes;
    add(Note{"HostMemory", host_memory(memory_, static_cast<uint64_t>(state.used) * block)});
  }
}

void StepTrace::end(const BlockManager& blocks, const Scheduler& scheduler) {
  if (!context_.on(TraceLevel::kStep)) return;
  if (did_something_) {
    done_.deliver = {now_ns() - decided_ns_};
    {
      const PartScope part(context_, TraceLevel::kOp, "generation_loop", "cache_logging");
      log_caches(blocks, scheduler);
    }
    const int64_t now = now_ns();
    const auto whole = [&](TraceEvent event) {
      tracer_->add({TraceLevel::kStep, begin_ns_, now, span_, Tracer::kRun, std::move(event)});
    };
    whole(PartCompleted{"generation_loop", "iteration_total", -1, done_.step});
    whole(done_);
  }
  context_ = {};
}

}  // namespace tinyvllm
