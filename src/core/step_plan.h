// What one step of the engine does (StepPlan: the scheduler's word to the runner) and what came of
// it (StepResult: the runner's word back).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sampling_params.h"

namespace tinyvllm {

using SequenceId = uint64_t;

// A token to feed: an id that is known, or the one that row r of the step in flight will sample,
// written as ~r. With a step always in flight the scheduler never waits to know what it decided.
using InputToken = int32_t;
constexpr InputToken token_from_row(int row) { return ~row; }
constexpr bool is_from_row(InputToken token) { return token < 0; }

struct SequencePlan {
  SequenceId sequence = 0;
  int position = 0;                                // of the first token fed: tokens already cached
  std::vector<InputToken> tokens;                  // fed this step: a chunk of prompt, or one token
  std::vector<std::vector<int32_t>> block_tables;  // [group][block], covering the tokens fed too
  bool sample = false;                             // whether the last token's logits are sampled
  SamplingParams sampling;
  int adapter = -1;
};

struct StepPlan {
  std::vector<SequencePlan> sequences;

  bool empty() const { return sequences.empty(); }
  int num_tokens() const {
    size_t count = 0;
    for (const SequencePlan& plan : sequences) count += plan.tokens.size();
    return static_cast<int>(count);
  }
};

struct SampledToken {
  SequenceId sequence = 0;
  int32_t token = -1;
  float logprob = 0;  // of that token under the model, before temperature
};

struct StepResult {
  std::vector<SampledToken> sampled;  // one per sequence with `sample`, in the plan's order
  std::string error;                  // empty when all went well
};

}  // namespace tinyvllm
