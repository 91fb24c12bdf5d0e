// Tokenizers from the `tokenizer.ggml.*` metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/tokenizer.h"

namespace tinyvllm {

// `end_ids`: end-of-sequence ids known from elsewhere.
Result<std::unique_ptr<Tokenizer>> make_gguf_tokenizer(const GgufVocabulary& vocabulary,
                                                       const std::vector<int64_t>& end_ids);

}  // namespace tinyvllm
