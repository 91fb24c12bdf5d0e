#include "engine/engine_core.h"

#include "base/check.h"

namespace tinyvllm {
namespace {

std::string describe_failure(const StepResult& result, const SampledToken* token) {
  if (token == nullptr) return result.error;
  return token->token == kNothingAllowed
             ? "the request's bans and penalties leave no token to choose"
             : "the model's logits are not numbers";
}

}  // namespace

std::vector<SequenceOutput> EngineCore::step() {
  scheduler_.schedule(plan_);
  if (!plan_.empty()) {
    InFlight submitted{runner_.submit(plan_), {}};
    for (const SequencePlan& plan : plan_.sequences) {
      submitted.sequences.emplace_back(plan.sequence, plan.sample);
    }
    in_flight_.push_back(std::move(submitted));
    steps_ += 1;
  }
  const size_t ahead = plan_.empty() ? 0 : static_cast<size_t>(depth_);
  if (in_flight_.size() <= ahead) return {};
  const InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  return commit(oldest);
}

std::vector<SequenceOutput> EngineCore::commit(const InFlight& step) {
  const StepResult result = runner_.wait(step.ticket);
  std::vector<SequenceOutput> outputs;
  auto sampled = result.sampled.begin();
  for (const auto& [sequence, samples] : step.sequences) {
    if (!samples && result.error.empty()) {
      scheduler_.commit(sequence, {});
      continue;
    }
    const SampledToken* token = samples && result.error.empty() ? &*sampled++ : nullptr;
    if (token == nullptr || token->token < 0) {
      scheduler_.abort(sequence);
      scheduler_.commit(sequence, {});
      outputs.push_back({sequence, {}, FinishReason::kError, 0, describe_failure(result, token)});
      continue;
    }
    const Committed committed = scheduler_.commit(sequence, {&token->token, 1});
    if (committed.tokens.empty())
      continue;  // it had ended, or was aborted, before this step was done
    outputs.push_back({sequence, {*token}, committed.finish, committed.cached_tokens, ""});
  }
  return outputs;
}

EngineStats EngineCore::stats() const {
  EngineStats stats;
  stats.running = scheduler_.num_running();
  stats.waiting = scheduler_.num_waiting();
  stats.used_blocks = blocks_.used_blocks();
  stats.total_blocks = blocks_.total_blocks();
  stats.preemptions = scheduler_.num_preemptions();
  stats.steps = steps_;
  stats.prefix = blocks_.prefix_stats();
  return stats;
}

}  // namespace tinyvllm
