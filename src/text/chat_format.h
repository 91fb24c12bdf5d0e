// What a model's files say about conversations: its template, or one for conversations with tools
// besides it, and the tokens that templates call by name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/chat_template.h"

namespace tinyvllm {

struct ChatFormat {
  std::string source;
  std::string source_with_tools;  // empty: the same
  std::vector<ChatTemplate::NamedToken> tokens;
};

// The source is empty when the files carry no template.
Result<ChatFormat> read_chat_format(const TokenizerData& data);

}  // namespace tinyvllm
