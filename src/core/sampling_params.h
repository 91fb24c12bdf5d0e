// How a token is chosen from logits. Names and defaults are vLLM's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

struct SamplingParams {
  double temperature = 1.0;  // 0: greedy, exactly
  uint64_t seed = 0;
  int max_tokens = 16;
  bool ignore_eos = false;
  std::vector<int32_t> stop_token_ids;
};

// An error says the field, its value and the allowed range.
Status validate(const SamplingParams& params);

}  // namespace tinyvllm
