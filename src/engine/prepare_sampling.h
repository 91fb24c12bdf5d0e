// Makes a request's sampling parameters ready for the sampler, which knows no text: checks them
// against the model, turns words into token ids, and draws a seed where none was given.
#pragma once

#include "base/result.h"
#include "core/sampling_params.h"
#include "text/tokenizer.h"

namespace tinyvllm {

Status prepare_sampling(SamplingParams& params, const Tokenizer& tokenizer, int64_t vocab_size);

}  // namespace tinyvllm
