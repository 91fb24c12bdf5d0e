#include "sched/scheduler.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace tinyvllm {
namespace {

// The part of a step's tokens that decoding leaves to prompts while there are any.
constexpr int kPromptShare = 4;  // one in four

// New sequences leave this part of the blocks to those that run, so that they do not preempt each
// other at once.
constexpr int kWatermark = 100;  // one in a hundred

}  // namespace

int Scheduler::longest_prompt() const {
  return std::min(config_.max_model_len, blocks_.capacity_tokens()) - 1;
}

Status Scheduler::check(const Request& request) const {
  const int prompt = static_cast<int>(request.prompt.size());
  if (prompt == 0) return error("the prompt is empty: expected at least one token");
  const int longest = longest_prompt() + 1;
  if (prompt >= longest) {
    return error("the prompt has ", prompt, " tokens, and one more is needed to answer, but the ",
                 longest < config_.max_model_len ? "KV cache" : "context", " holds ", longest);
  }
  return validate(request.sampling);
}

Status Scheduler::add(Request request) {
  TRY(check(request));
  const int room = longest_prompt() + 1 - static_cast<int>(request.prompt.size());
  request.sampling.max_tokens = std::min(request.sampling.max_tokens, room);
  auto sequence = std::make_unique<Sequence>();
  sequence->arrival = arrivals_++;
  sequence->tokens = request.prompt;
  sequence->request = std::move(request);
  const auto [slot, is_new] = sequences_.emplace(sequence->request.id, nullptr);
  CHECK(is_new) << "two sequences with id " << sequence->request.id;
  waiting_.insert(sequence.get());
  slot->second = std::move(sequence);
  return Status();
}

void Scheduler::abort(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& sequence = *found->second;
  if (sequence.finish == FinishReason::kNone) sequence.finish = FinishReason::kAbort;
  waiting_.erase(&sequence);
  stop_running(sequence);
  forget_if_over(sequence);
}

// Takes a sequence's blocks and its place among those that run.
void Scheduler::stop_running(Sequence& sequence) {
  if (!sequence.running) return;
  blocks_.release(sequence.blocks);
  running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  sequence.running = false;
}

void Scheduler::forget_if_over(Sequence& sequence) {
  if (sequence.finish == FinishReason::kNone || !sequence.in_flight.empty()) return;
  sequences_.erase(sequence.request.id);
}

void Scheduler::preempt(Sequence& sequence) {
  stop_running(sequence);
  sequence.fed = 0;
  sequence.computed = 0;
  sequence.row_in_flight = -1;
  for (StepInFlight& step : sequence.in_flight) step.keeps = false;
  sequence.preemptions += 1;
  preemptions_ += 1;
  waiting_.insert(&sequence);
}

// How many of this step's tokens decoding leaves to prompts.
int Scheduler::prompt_reserve() {
  const bool may_start =
      !waiting_.empty() && static_cast<int>(running_.size()) < config_.max_num_seqs;
  const bool prompts = may_start || std::any_of(running_.begin(), running_.end(),
                                                [](const Sequence* s) { return !s->decodes(); });
  if (!prompts) return 0;
  const int share = config_.max_num_batched_tokens / kPromptShare;
  // A budget too small to be shared goes to prompts one step in four.
  return share > 0 ? share : steps_ % kPromptShare == 0 ? config_.max_num_batched_tokens : 0;
}

bool Scheduler::can_decode(const Sequence& sequence) const {
  if (!sequence.decodes()) return false;
  if (sequence.fed < sequence.known()) return true;
  // Its next token is still being sampled: it can be fed by reference, unless the device will not
  // have it, or it is certain to be the last one.
  return sequence.row_in_flight >= 0 && !sequence.request.awaits_tokens &&
         sequence.generated() + 1 < sequence.request.sampling.max_tokens;
}

// Every sequence that decodes gets its next token's slot, in order; the last ones in the order pay.
void Scheduler::make_room_for_decodes(StepPlan& step) {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    sequence.has_slot = false;
    if (!can_decode(sequence)) continue;
    while (!(sequence.has_slot =
                 blocks_.reserve(sequence.blocks, sequence.fed, sequence.fed + 1, step.copies))) {
      Sequence& last = *running_.back();
      // The last one waits for its own step in flight, which may let blocks go that left its
      // window.
      if (&last == &sequence && !sequence.in_flight.empty()) break;
      preempt(last);
      if (&last == &sequence) return;
    }
  }
}

void Scheduler::plan_decodes(StepPlan& step, int budget) {
  const size_t count = running_.size();
  for (size_t asked = 0; asked < count; ++asked) {
    const size_t at = (first_decode_ + asked) % count;
    if (!running_[at]->has_slot) continue;
    if (static_cast<int>(step.tokens.size()) >= budget) {
      first_decode_ = at;
      return;
    }
    plan(*running_[at], 1, step);
  }
}

// How many of its tokens a step may feed.
int Scheduler::chunk_limit(const Sequence& sequence, const StepPlan& step) const {
  const int limit = std::min(sequence.known() - sequence.fed, budget_left(step));
  if (!sequence.is_scored()) return limit;
  return std::min(limit, config_.max_scored_tokens - scored_);
}

// Makes room for up to `wanted` more tokens of a prompt, at the cost of prompts that go after it.
// Sequences that decode are left alone: they end by themselves.
int Scheduler::reserve_chunk(Sequence& sequence, int wanted, StepPlan& step) {
  for (;;) {
    const int room =
        sequence.blocks.capacity - sequence.fed + blocks_.available_blocks() * blocks_.block_size();
    const int count = std::min(wanted, room);
    if (count > 0 &&
        blocks_.reserve(sequence.blocks, sequence.fed, sequence.fed + count, step.copies)) {
      return count;
    }
    Sequence& last = *running_.back();
    if (&last == &sequence || last.decodes()) return 0;
    preempt(last);
  }
}

void Scheduler::plan_prompts(StepPlan& step) {
  // By index: reserving may preempt the ones at the end.
  for (size_t i = 0; i < running_.size() && budget_left(step) > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.decodes()) continue;
    const int wanted = chunk_limit(sequence, step);
    const int count = wanted > 0 ? reserve_chunk(sequence, wanted, step) : 0;
    if (count > 0) plan(sequence, count, step);
  }
}

void Scheduler::admit(StepPlan& step) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (static_cast<int>(running_.size()) >= config_.max_num_seqs || budget_left(step) == 0) return;
    Sequence& sequence = **next++;
    if (!sequence.in_flight.empty()) continue;  // preempted, and a token of its own is on its way
    switch (start(sequence, step)) {
      case Start::kStarted:
        break;
      case Start::kLater:
        continue;
      case Start::kNoRoom:
        return;
    }
  }
}

// Takes what the caches have of its tokens, and gives it a first chunk.
Scheduler::Start Scheduler::start(Sequence& sequence, StepPlan& step) {
  const int watermark = running_.empty() ? 0 : std::max(1, blocks_.total_blocks() / kWatermark);
  if (blocks_.available_blocks() <= watermark) return Start::kNoRoom;
  if (chunk_limit(sequence, step) == 0) return Start::kLater;

  const auto parent = sequences_.find(sequence.request.shares_prompt_of);
  const int prompt = static_cast<int>(sequence.request.prompt.size());
  int ready = 0;  // tokens that need not be computed
  if (parent != sequences_.end() && parent->second->running && sequence.generated() == 0) {
    if (parent->second->computed < prompt - 1) return Start::kLater;
    if (blocks_.fork(parent->second->blocks, sequence.blocks, prompt - 1)) ready = prompt - 1;
  }
  if (sequence.blocks.tables.empty() && sequence.request.reuse_prefix) {
    ready = blocks_.match_prefix(sequence.blocks, sequence.tokens, sequence.request.cache_salt);
  }
  sequence.fed = sequence.computed = ready;
  const int room = sequence.blocks.capacity - ready +
                   (blocks_.available_blocks() - watermark) * blocks_.block_size();
  const int count = std::min(chunk_limit(sequence, step), room);
  if (count <= 0 || !blocks_.reserve(sequence.blocks, ready, ready + count, step.copies)) {
    blocks_.release(sequence.blocks);
    sequence.fed = sequence.computed = 0;
    return Start::kNoRoom;
  }
  if (sequence.cached_tokens < 0) {
    sequence.cached_tokens = ready;
    blocks_.count_prefix_query(prompt, std::min(ready, prompt));
  }
  waiting_.erase(&sequence);
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &sequence, GoesBefore()),
                  &sequence);
  sequence.running = true;
  plan(sequence, count, step);
  return Start::kStarted;
}

// Adds the sequence's next `count` tokens to the step; their slots are reserved.
void Scheduler::plan(Sequence& sequence, int count, StepPlan& step) {
  SequencePlan plan;
  plan.sequence = sequence.request.id;
  plan.position = sequence.fed;
  plan.num_tokens = count;
  plan.block_tables = &sequence.blocks.tables;
  plan.sampling = &sequence.request.sampling;
  plan.history = sequence.tokens;
  plan.prompt_tokens = static_cast<int>(sequence.request.prompt.size());
  plan.end_ids = config_.end_ids;
  plan.answer = sequence.request.answer;
  plan.all_logits = sequence.is_scored();
  if (plan.all_logits) scored_ += count;
  if (sequence.fed < sequence.known()) {
    const auto first = sequence.tokens.begin() + sequence.fed;
    step.tokens.insert(step.tokens.end(), first, first + count);
    plan.sample = sequence.fed + count == sequence.known();
  } else {
    step.tokens.push_back(token_from_row(sequence.row_in_flight));
    plan.sample = true;
  }
  sequence.has_slot = false;
  sequence.fed += count;
  sequence.row_in_flight = plan.sample ? rows_++ : -1;
  sequence.in_flight.push_back({sequence.fed, true, true});
  step.sequences.push_back(plan);
}

void Scheduler::schedule(StepPlan& step) {
  step.clear();
  rows_ = scored_ = 0;
  make_room_for_decodes(step);
  plan_decodes(step, config_.max_num_batched_tokens - prompt_reserve());
  plan_prompts(step);
  admit(step);
  plan_decodes(step, config_.max_num_batched_tokens);  // what prompts left over
  steps_ += 1;
}

FinishReason Scheduler::finish_after(const Sequence& sequence, int32_t token,
                                     TraceContext* trace) const {
  std::optional<PartScope> part;
  if (trace != nullptr) part.emplace(*trace, TraceLevel::kOp, "generation_loop", "eos_check");
  const SamplingParams& sampling = sequence.request.sampling;
  const auto contains = [&](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (!sampling.ignore_eos && contains(config_.end_ids)) return FinishReason::kStop;
  if (contains(sampling.stop_token_ids)) return FinishReason::kStop;
  if (sequence.generated() >= sampling.max_tokens) return FinishReason::kLength;
  return FinishReason::kNone;
}

Committed Scheduler::commit(SequenceId id, std::span<const int32_t> tokens, TraceContext* trace) {
  const auto found = sequences_.find(id);
  CHECK(found != sequences_.end() && !found->second->in_flight.empty())
      << "commit of sequence " << id << ", which has no step in flight";
  Sequence& sequence = *found->second;
  const StepInFlight done = sequence.in_flight.front();
  sequence.in_flight.erase(sequence.in_flight.begin());

  Committed committed{
      id, {}, FinishReason::kNone, std::max(0, sequence.cached_tokens), sequence.preemptions};
  if (done.counts && sequence.finish == FinishReason::kNone) {
    const bool sampled = done.computed >= sequence.known() || !done.keeps;
    if (done.keeps) sequence.computed = std::min(done.computed, sequence.known());
    for (const int32_t token : tokens) {
      sequence.tokens.push_back(token);
      committed.tokens.push_back(token);
      sequence.finish = committed.finish = finish_after(sequence, token, trace);
      if (sequence.finish != FinishReason::kNone) break;
    }
    if (sampled && tokens.size() != 1) void_later_steps(sequence);
    if (done.keeps) {
      blocks_.commit(sequence.blocks, sequence.tokens, sequence.computed,
                     sequence.request.cache_salt);
    }
    if (sequence.finish != FinishReason::kNone) {
      waiting_.erase(&sequence);  // a preempted one may end with the token that was on its way
      stop_running(sequence);
    }
  }
  forget_if_over(sequence);
  return committed;
}

// Steps in flight were planned for exactly one more token; there was another number.
void Scheduler::void_later_steps(Sequence& sequence) {
  for (StepInFlight& step : sequence.in_flight) step.counts = step.keeps = false;
  sequence.row_in_flight = -1;
  if (sequence.running) sequence.fed = std::min(sequence.computed, sequence.known() - 1);
}

}  // namespace tinyvllm
