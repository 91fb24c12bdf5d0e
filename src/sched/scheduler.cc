#include "sched/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace tinyvllm {

Status Scheduler::add(Request request) {
  const int prompt = static_cast<int>(request.prompt.size());
  if (prompt == 0) return error("the prompt is empty: expected at least one token");
  const int longest = std::min(config_.max_model_len, blocks_.capacity_tokens());
  if (prompt >= longest) {
    return error("the prompt has ", prompt,
                 " tokens, and one more is needed to answer, but the context holds ", longest);
  }
  TRY(validate(request.sampling));
  request.sampling.max_tokens = std::min(request.sampling.max_tokens, longest - prompt);
  waiting_.push_back(std::move(request));
  return Status();
}

void Scheduler::abort(SequenceId id) {
  std::erase_if(waiting_, [&](const Request& request) { return request.id == id; });
  for (auto sequence = running_.begin(); sequence != running_.end(); ++sequence) {
    if (sequence->request.id != id) continue;
    sequence->finish = FinishReason::kAbort;
    release_if_over(sequence);
    return;
  }
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < config_.max_num_seqs) {
    const Request& next = waiting_.front();
    const int worst = static_cast<int>(next.prompt.size()) + next.sampling.max_tokens;
    if (!blocks_.grow(next.id, worst)) return;
    Sequence sequence;
    sequence.tokens = next.prompt;
    sequence.request = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push_back(std::move(sequence));
  }
}

// Adds the sequence's share to the step; false when it has none.
bool Scheduler::plan_sequence(Sequence& sequence, int budget, int row, StepPlan& step) {
  if (sequence.finish != FinishReason::kNone || budget == 0) return false;
  const int known = static_cast<int>(sequence.tokens.size());
  SequencePlan plan;
  plan.position = sequence.fed;
  if (sequence.fed < known) {
    plan.num_tokens = std::min(known - sequence.fed, budget);
    plan.sample = sequence.fed + plan.num_tokens == known;
    const auto first = sequence.tokens.begin() + sequence.fed;
    step.tokens.insert(step.tokens.end(), first, first + plan.num_tokens);
  } else {
    // All is fed, and the next token is still being computed: feed it by reference, unless it is
    // certain to be the last one.
    if (sequence.row_in_flight < 0) return false;
    if (sequence.generated() + 1 >= sequence.request.sampling.max_tokens) return false;
    plan.num_tokens = 1;
    plan.sample = true;
    step.tokens.push_back(token_from_row(sequence.row_in_flight));
  }
  plan.sequence = sequence.request.id;
  plan.sampling = &sequence.request.sampling;
  plan.history = sequence.tokens;
  plan.prompt_tokens = static_cast<int>(sequence.request.prompt.size());
  plan.end_ids = config_.end_ids;
  plan.block_tables = &blocks_.tables(sequence.request.id);
  sequence.fed += plan.num_tokens;
  sequence.row_in_flight = plan.sample ? row : -1;
  sequence.steps_in_flight += 1;
  step.sequences.push_back(plan);
  return true;
}

StepPlan Scheduler::schedule() {
  admit();
  StepPlan step;
  int row = 0;  // counts the samples of this step
  for (Sequence& sequence : running_) {
    const int budget = config_.max_num_batched_tokens - static_cast<int>(step.tokens.size());
    if (plan_sequence(sequence, budget, row, step)) row += step.sequences.back().sample ? 1 : 0;
  }
  return step;
}

FinishReason Scheduler::finish_after(const Sequence& sequence, int32_t token) const {
  const SamplingParams& sampling = sequence.request.sampling;
  const auto contains = [&](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (!sampling.ignore_eos && contains(config_.end_ids)) return FinishReason::kStop;
  if (contains(sampling.stop_token_ids)) return FinishReason::kStop;
  if (sequence.generated() >= sampling.max_tokens) return FinishReason::kLength;
  return FinishReason::kNone;
}

Committed Scheduler::commit(SequenceId id, std::span<const int32_t> tokens) {
  const auto sequence = std::find_if(running_.begin(), running_.end(),
                                     [&](const Sequence& s) { return s.request.id == id; });
  CHECK(sequence != running_.end() && sequence->steps_in_flight > 0)
      << "commit of sequence " << id << ", which has no step in flight";
  sequence->steps_in_flight -= 1;
  if (sequence->steps_in_flight == 0) sequence->row_in_flight = -1;

  Committed committed{id, {}, FinishReason::kNone};
  for (const int32_t token : tokens) {
    if (sequence->finish != FinishReason::kNone) break;  // past the end: void
    sequence->tokens.push_back(token);
    committed.tokens.push_back(token);
    sequence->finish = finish_after(*sequence, token);
    committed.finish = sequence->finish;
  }
  release_if_over(sequence);
  return committed;
}

void Scheduler::release_if_over(std::list<Sequence>::iterator sequence) {
  if (sequence->finish == FinishReason::kNone || sequence->steps_in_flight > 0) return;
  blocks_.release(sequence->request.id);
  running_.erase(sequence);
}

}  // namespace tinyvllm
