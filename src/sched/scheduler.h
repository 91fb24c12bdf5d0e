// Decides what each step computes: requests in, StepPlan out. A pure state machine on the engine
// thread; it never sees weights, text or clocks.
//
// A step is planned in three passes over a budget of tokens. Sequences that decode come first, one
// token each, except for a share of the budget that is kept for prompts; then prompts that are
// already under way; then new ones, as long as blocks are left above a watermark. So neither long
// prompts nor many decoders can starve the other.
//
// Blocks are given as sequences grow. When one cannot grow, the sequence that goes last is
// preempted: it loses its blocks and waits to be computed again, which the prefix cache makes
// cheap. The one that goes first always has its way, so everyone finishes.
//
// A step may be planned while one is in flight: the token to feed is then "row r of the step in
// flight". What turns out not to count (the sequence ended, or got another number of tokens than
// one) is void when it is committed.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "core/step_plan.h"
#include "kv/block_manager.h"
#include "sched/sequence.h"

namespace tinyvllm {

struct SchedulerConfig {
  int max_num_batched_tokens = 512;
  int max_num_seqs = 256;
  int max_model_len = 2048;
  std::vector<int32_t> end_ids;  // tokens that end a sequence
  int max_scored_tokens = 64;    // in a step, of prompts of which every position is asked for
};

struct Committed {
  SequenceId sequence = 0;
  std::vector<int32_t> tokens;                // new, in order; an end token is among them
  FinishReason finish = FinishReason::kNone;  // set once, in the commit that finished it
  int cached_tokens = 0;                      // of the prompt
  int preemptions = 0;                        // so far
};

class Scheduler {
 public:
  Scheduler(SchedulerConfig config, BlockManager& blocks)
      : config_(std::move(config)), blocks_(blocks) {}

  // Refuses, with both numbers, what can never fit. Safe to call from any thread.
  Status check(const Request& request) const;
  int longest_prompt() const;  // that is not refused
  Status add(Request request);
  void abort(SequenceId sequence);  // nothing is heard of it again
  bool has_work() const { return !waiting_.empty() || !running_.empty(); }

  // The next step; empty when there is nothing to do (or nothing until a step in flight commits).
  // The plan points into the scheduler: it is good until the next call of any other function.
  void schedule(StepPlan& step);

  // Call once per planned sequence and step, in the order in which steps were scheduled: with the
  // tokens sampled, or none for a step that only fed prompt.
  Committed commit(SequenceId sequence, std::span<const int32_t> tokens,
                   TraceContext* trace = nullptr);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  uint64_t num_preemptions() const { return preemptions_; }

 private:
  int prompt_reserve();
  void make_room_for_decodes(StepPlan& step);
  void plan_decodes(StepPlan& step, int budget);
  void plan_prompts(StepPlan& step);
  void admit(StepPlan& step);
  enum class Start { kStarted, kLater, kNoRoom };
  Start start(Sequence& sequence, StepPlan& step);
  int reserve_chunk(Sequence& sequence, int wanted, StepPlan& step);
  int chunk_limit(const Sequence& sequence, const StepPlan& step) const;
  bool can_decode(const Sequence& sequence) const;
  void plan(Sequence& sequence, int count, StepPlan& step);
  void preempt(Sequence& sequence);
  void stop_running(Sequence& sequence);
  void void_later_steps(Sequence& sequence);
  void forget_if_over(Sequence& sequence);
  FinishReason finish_after(const Sequence& sequence, int32_t token, TraceContext* trace) const;
  int budget_left(const StepPlan& step) const {
    return config_.max_num_batched_tokens - static_cast<int>(step.tokens.size());
  }

  const SchedulerConfig config_;
  BlockManager& blocks_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::set<Sequence*, GoesBefore> waiting_;
  std::vector<Sequence*> running_;  // in the order of GoesBefore
  uint64_t arrivals_ = 0;
  uint64_t steps_ = 0;
  uint64_t preemptions_ = 0;
  size_t first_decode_ = 0;  // who is asked first when the budget is smaller than their number
  int rows_ = 0;             // samples in the step being planned
  int scored_ = 0;           // tokens in it whose every position is asked for
};

}  // namespace tinyvllm
