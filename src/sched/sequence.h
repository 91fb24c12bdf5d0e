// A request on its way through the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "core/request.h"
#include "kv/block_manager.h"

namespace tinyvllm {

// What a submitted step will have done for the sequence once it is committed.
struct StepInFlight {
  int computed = 0;    // tokens in the cache after it
  bool keeps = true;   // whether the blocks it wrote are still the sequence's
  bool counts = true;  // whether the tokens it brings are wanted
};

struct Sequence {
  Request request;
  uint64_t arrival = 0;
  std::vector<int32_t> tokens;  // the prompt and everything committed
  SequenceBlocks blocks;

  int fed = 0;                          // tokens handed to steps so far, those in flight counted in
  int computed = 0;                     // tokens whose K and V are in the cache for good
  std::vector<StepInFlight> in_flight;  // oldest first
  int row_in_flight = -1;  // of the sample that the newest step will bring; -1: none pending
  int cached_tokens = -1;  // of the prompt, found in the prefix cache; -1: not started yet
  int preemptions = 0;
  bool running = false;
  bool has_slot = false;  // for its next token, in the step being planned
  FinishReason finish = FinishReason::kNone;

  int known() const { return static_cast<int>(tokens.size()); }
  int generated() const { return static_cast<int>(tokens.size() - request.prompt.size()); }
  // Whether its next step feeds prompt of which every position is asked for.
  bool is_scored() const {
    return request.sampling.prompt_logprobs && fed + 1 < static_cast<int>(request.prompt.size());
  }
  // Whether its next step feeds one token: known, or still being sampled.
  bool decodes() const { return fed + 1 >= known() && fed > 0; }
};

// Who goes first: by priority, then by arrival.
struct GoesBefore {
  bool operator()(const Sequence* a, const Sequence* b) const {
    if (a->request.priority != b->request.priority) {
      return a->request.priority < b->request.priority;
    }
    return a->arrival < b->arrival;
  }
};

}  // namespace tinyvllm
