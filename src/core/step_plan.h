// What one step of the engine does (StepPlan: the scheduler's word to the runner) and what came of
// it (StepResult: the runner's word back).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/kv.h"
#include "core/sampling_params.h"
#include "telemetry/trace_context.h"
#include "tinyvllm/outputs.h"

namespace tinyvllm {

using SequenceId = uint64_t;

// A token to feed: an id that is known, or the one that row r of the step in flight will sample,
// written as ~r. With a step always in flight the scheduler never waits to know what it decided.
using InputToken = int32_t;
constexpr InputToken token_from_row(int row) { return ~row; }
constexpr bool is_from_row(InputToken token) { return token < 0; }

// One sequence's share of a step. What it points to stays as it is until `submit` has returned.
struct SequencePlan {
  SequenceId sequence = 0;
  int position = 0;                           // of the first token fed: tokens already cached
  int num_tokens = 0;                         // fed this step: a chunk of prompt, or one token
  const BlockTables* block_tables = nullptr;  // covering the tokens fed too
  bool sample = false;                        // whether the last token's logits are sampled
  bool all_logits = false;                    // whether every fed token's logits are wanted
  const SamplingParams* sampling = nullptr;   // with `sample`, or to score the prompt
  uint32_t answer = 0;                        // which of the request's answers this is
  // All tokens whose value is known, prompt first. Those fed by reference to a row are not among
  // them: the runner appends them.
  std::span<const int32_t> history;
  int prompt_tokens = 0;             // how many of them are the prompt
  std::span<const int32_t> end_ids;  // tokens that end an answer: min_tokens holds them back
  int adapter = -1;
};

// A block's bytes, all layers of its group, to be copied before the step writes anything.
struct BlockCopy {
  int group = 0;
  int32_t from = 0;
  int32_t to = 0;
};

struct StepPlan {
  std::vector<SequencePlan> sequences;
  std::vector<InputToken> tokens;  // those of all sequences, end to end
  std::vector<BlockCopy> copies;
  TraceContext trace = {};  // the step's own span

  bool empty() const { return sequences.empty(); }
  void clear() {
    sequences.clear();
    tokens.clear();
    copies.clear();
  }
};

// What a sampled token can be instead of an id.
constexpr int32_t kNotNumbers = -1;      // the model's logits have a NaN, or no finite maximum
constexpr int32_t kNothingAllowed = -2;  // bans and penalties left no token to choose

// A prompt's token, seen from the token before it.
struct ScoredToken {
  SequenceId sequence = 0;
  int position = 0;
  int32_t token = kNotNumbers;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

struct StepResult {
  std::vector<SampledToken> sampled;  // one per sequence with `sample`, in the plan's order
  // With all_logits and params.prompt_logprobs: the prompt's tokens that follow those fed.
  std::vector<ScoredToken> scored;
  std::string error;  // empty when all went well
  // How long the two parts of the step took; 0 when it was not traced.
  int64_t forward_ns = 0;
  int64_t sample_ns = 0;
};

}  // namespace tinyvllm
