// What tokenizer_config.json and special_tokens_map.json, where a model has them, add to its
// tokenizer. Both are optional, and so is everything in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/added_tokens.h"

namespace tinyvllm {

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token;
  std::optional<bool> add_bos_token, add_eos_token;
  std::string tokenizer_class;
  std::vector<AddedToken> added_tokens;  // of "added_tokens_decoder", with their ids
};

Result<TokenizerConfig> read_tokenizer_config(const TokenizerData& data);

}  // namespace tinyvllm
