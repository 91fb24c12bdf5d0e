// Tokenizers from a Hugging Face tokenizer.json, as the `tokenizers` package reads it.
#pragma once

#include <memory>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/tokenizer.h"

namespace tinyvllm {

// data.tokenizer_json is the tokenizer; the files beside it say which tokens end an answer. Its
// "truncation" and "padding" are for batches of training data and have no part in this.
Result<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerData& data);

}  // namespace tinyvllm
