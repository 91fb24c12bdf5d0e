// What kind of tokenizer a model's files carry, for people. Reading the tokenizer itself is text's
// work; this looks at names only.
#pragma once

#include <string>

#include "core/tokenizer_data.h"

namespace tinyvllm {

std::string tokenizer_kind(const TokenizerData& data);  // "byte-level BPE (smollm)", "none"
bool has_chat_template(const TokenizerData& data);

}  // namespace tinyvllm
