// How likely a model finds given tokens, computed by the runner, kernels and paged cache that
// generation uses. The tool for perplexity and for comparisons with other implementations.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/runtime.h"
#include "engine/model_runner.h"
#include "model/model.h"

namespace tinyvllm {

struct TokenScore {
  float logprob = 0;       // of the token that came
  int32_t best = -1;       // the likeliest one
  float best_logprob = 0;  // and how likely that was
};

class Scorer {
 public:
  // For texts of up to `max_tokens` tokens.
  static Result<std::unique_ptr<Scorer>> create(Runtime& runtime, const Model& model,
                                                int max_tokens);

  // Scores of tokens[first], tokens[first + 1], …, each after all tokens before it; first ≥ 1.
  Result<std::vector<TokenScore>> score(std::span<const int32_t> tokens, int first);

 private:
  Scorer(Runtime& runtime, int max_tokens) : runtime_(runtime), max_tokens_(max_tokens) {}
  Status feed(std::span<const int32_t> tokens, int position, bool all_logits);

  Runtime& runtime_;
  const int max_tokens_;
  std::unique_ptr<ModelRunner> runner_;
  BlockTables tables_;  // one text at a time, from block 1 on
};

}  // namespace tinyvllm
