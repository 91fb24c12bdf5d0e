// Decides what each step computes: requests in, StepPlan out. A pure state machine on the engine
// thread; it never sees weights, text or clocks.
//
// A sequence is fed up to `fed` tokens, in chunks within the step's budget. Its last known token's
// logits are sampled, and the sampled token is fed in the next step, which may be planned before
// the sample is known (as "row r of the step in flight"). commit() brings the sample in. A sequence
// that finishes while a later step of its own is in flight keeps its blocks until that step is
// committed.
//
// For now a sequence is admitted only when its worst case fits the free blocks, so running out of
// them midway cannot happen.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "core/step_plan.h"
#include "kv/block_manager.h"

namespace tinyvllm {

struct SchedulerConfig {
  int max_num_batched_tokens = 512;
  int max_num_seqs = 1;
  int max_model_len = 2048;
  std::vector<int32_t> end_ids;  // tokens that end a sequence
};

struct Committed {
  SequenceId sequence = 0;
  std::vector<int32_t> tokens;                // new, in order; an end token is among them
  FinishReason finish = FinishReason::kNone;  // set once, in the commit that finished it
};

class Scheduler {
 public:
  Scheduler(SchedulerConfig config, BlockManager& blocks)
      : config_(std::move(config)), blocks_(blocks) {}

  // Refuses, with both numbers, what can never fit.
  Status add(Request request);
  void abort(SequenceId sequence);
  bool has_work() const { return !waiting_.empty() || !running_.empty(); }

  // The next step; empty when there is nothing to do (or nothing until a step in flight commits).
  StepPlan schedule();

  // Call once per planned sequence and step, in the order in which steps were scheduled: with the
  // tokens sampled, or none for a step that only fed prompt.
  Committed commit(SequenceId sequence, std::span<const int32_t> tokens);

 private:
  struct Sequence {
    Request request;
    std::vector<int32_t> tokens;  // prompt and everything committed
    int fed = 0;                  // tokens handed to steps so far, those in flight counted in
    int steps_in_flight = 0;
    int row_in_flight = -1;  // of the sample that the newest step will bring; -1: none pending
    FinishReason finish = FinishReason::kNone;

    int generated() const { return static_cast<int>(tokens.size() - request.prompt.size()); }
  };

  void admit();
  bool plan_sequence(Sequence& sequence, int budget, int row, StepPlan& step);
  FinishReason finish_after(const Sequence& sequence, int32_t token) const;
  void release_if_over(std::list<Sequence>::iterator sequence);

  const SchedulerConfig config_;
  BlockManager& blocks_;
  std::deque<Request> waiting_;
  std::list<Sequence> running_;
};

}  // namespace tinyvllm
