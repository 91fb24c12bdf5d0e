#include "engine/engine_core.h"

#include "base/check.h"

namespace tinyvllm {
namespace {

using Clock = std::chrono::steady_clock;

std::string describe_failure(int32_t token) {
  return token == kNothingAllowed ? "the request's bans and penalties leave no token to choose"
                                  : "the model's logits are not numbers";
}

}  // namespace

Status EngineCore::add(Request request) {
  request.awaits_tokens = !runner_.feeds_unseen(request.sampling);
  return scheduler_.add(std::move(request));
}

void EngineCore::abort(SequenceId sequence) {
  scheduler_.abort(sequence);
  started_.erase(sequence);
}

std::vector<SequenceOutput> EngineCore::step() {
  PartScope scheduling(trace(), TraceLevel::kStep, "generation_loop", "schedule");
  scheduler_.schedule(plan_);
  const int64_t schedule_ns = scheduling.end();
  if (!plan_.empty()) {
    trace_.planned(plan_, scheduler_, budget_, schedule_ns);
    submit();
  }
  // A step whose ops are watched is waited for, so that its times are its own.
  const bool alone = plan_.empty() || trace().on(TraceLevel::kOp);
  const size_t ahead = alone ? 0 : static_cast<size_t>(depth_);
  std::vector<SequenceOutput> outputs;
  while (in_flight_.size() > ahead) {
    const InFlight oldest = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (SequenceOutput& output : commit(oldest)) outputs.push_back(std::move(output));
    trace_.decided();
    if (plan_.empty()) break;
  }
  return outputs;
}

void EngineCore::submit() {
  const Clock::time_point now = Clock::now();
  InFlight submitted;
  for (const SequencePlan& plan : plan_.sequences) {
    submitted.sequences.emplace_back(plan.sequence, plan.sample);
    const bool answers = static_cast<int>(plan.history.size()) > plan.prompt_tokens;
    if (!answers && started_.emplace(plan.sequence, now).second) trace_.started(plan);
  }
  plan_.trace = trace();
  submitted.step = steps_ + 1;
  submitted.phase = phase_of(plan_);
  submitted.ticket = runner_.submit(plan_);
  in_flight_.push_back(std::move(submitted));
  steps_ += 1;
}

// What a step brought: for each of its sequences a token, or nothing yet, or its failure.
std::vector<SequenceOutput> EngineCore::commit(const InFlight& step) {
  PartScope waiting(trace(), TraceLevel::kStep, "sampling", "next_token_wait");
  StepResult result = runner_.wait(step.ticket);
  waiting.end();
  trace_.completed(step.step, step.phase, result);
  const Clock::time_point now = Clock::now();
  std::vector<SequenceOutput> outputs;
  auto sampled = result.sampled.begin();
  auto scored = result.scored.begin();
  for (const auto& [sequence, samples] : step.sequences) {
    const SampledToken* token = samples && result.error.empty() ? &*sampled++ : nullptr;
    SequenceOutput output = commit(sequence, token, result.error);
    for (; scored != result.scored.end() && scored->sequence == sequence; ++scored) {
      output.scored.push_back(std::move(*scored));
    }
    const auto started = started_.find(sequence);
    if (started == started_.end()) continue;  // it was over before this step was done
    output.started = started->second;
    output.time = now;
    if (output.finish != FinishReason::kNone) started_.erase(started);
    if (output.finish == FinishReason::kNone && output.tokens.empty() && output.scored.empty()) {
      continue;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

SequenceOutput EngineCore::commit(SequenceId sequence, const SampledToken* token,
                                  const std::string& error) {
  SequenceOutput output;
  output.sequence = sequence;
  if (!error.empty() || (token != nullptr && token->token < 0)) {
    scheduler_.abort(sequence);
    scheduler_.commit(sequence, {});
    output.finish = FinishReason::kError;
    output.error = error.empty() ? describe_failure(token->token) : error;
    return output;
  }
  const std::span<const int32_t> tokens =
      token != nullptr ? std::span(&token->token, 1) : std::span<const int32_t>();
  PartScope push(trace(), TraceLevel::kOp, "generation_loop", "token_push");
  const Committed committed = scheduler_.commit(sequence, tokens, &trace());
  push.end();
  if (!committed.tokens.empty()) output.tokens.push_back(*token);
  output.finish = committed.finish;
  output.cached_tokens = committed.cached_tokens;
  output.preemptions = committed.preemptions;
  return output;
}

EngineStats EngineCore::stats() const {
  EngineStats stats;
  stats.running = scheduler_.num_running();
  stats.waiting = scheduler_.num_waiting();
  stats.used_blocks = blocks_.used_blocks();
  stats.touched_blocks = blocks_.touched_blocks();
  stats.total_blocks = blocks_.total_blocks();
  stats.preemptions = scheduler_.num_preemptions();
  stats.steps = steps_;
  stats.prefix = blocks_.prefix_stats();
  return stats;
}

}  // namespace tinyvllm
