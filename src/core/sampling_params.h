// What a request may ask for (tinyvllm/sampling_params.h), checked. sample/sampler.h says in which
// order the fields act.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "tinyvllm/sampling_params.h"

namespace tinyvllm {

// What the server grants. Ids are checked when the vocabulary's size is known.
struct SamplingLimits {
  int max_n = 128;
  int max_logprobs = 20;
  int64_t vocab_size = 0;
};

// An error says the field, its value and the allowed range.
Status validate(const SamplingParams& params, const SamplingLimits& limits = {});

// What a model's author recommends (generation_config.json); absent: no opinion.
struct SamplingDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
};

// The parameters of a request that says nothing itself. An error blames generation_config.
Result<SamplingParams> default_params(const SamplingDefaults& model);

}  // namespace tinyvllm
