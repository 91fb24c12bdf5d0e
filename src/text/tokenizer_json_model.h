// The "model" of a tokenizer.json: vocabulary and merges, or scores.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/json.h"
#include "text/token_model.h"
#include "text/token_texts.h"
#include "text/vocabulary.h"

namespace tinyvllm {

struct JsonModel {
  std::string_view type;  // "BPE", …
  Vocabulary ids;         // by the strings of the file
  TokenTexts texts;       // views into the document, until packed
};

// The vocabulary first, because the added tokens that the model must know about (`added`) are given
// by names that it may hold.
Result<JsonModel> read_model_vocabulary(const Json& json);

// `byte_level`: whether pieces come as bytes of text, where the vocabulary spells them in the byte
// alphabet. Set to false by a model that cannot take them so.
Result<std::unique_ptr<TokenModel>> read_model(const Json& json, const JsonModel& model,
                                               const AddedTokens& added, bool& byte_level);

}  // namespace tinyvllm
