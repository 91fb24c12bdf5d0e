// The tokenizer of a Hugging Face folder as metadata of a GGUF file.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "io/gguf_pairs.h"

namespace tinyvllm {

Status add_hf_vocabulary(const TokenizerData& data, int64_t vocab_size, GgufPairs& pairs);

}  // namespace tinyvllm
