#include "text/tokenizer_json.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/end_tokens.h"
#include "text/json.h"
#include "text/pipeline.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json_model.h"
#include "text/tokenizer_json_steps.h"

namespace tinyvllm {
namespace {

Result<AddedToken> read_added_token(const Json& json) {
  AddedToken token;
  TRY_ASSIGN(const std::string_view content, json.string_field("content"));
  token.content = content;
  TRY_ASSIGN(token.special, json.boolean_field_or("special", false));
  TRY_ASSIGN(token.normalized, json.boolean_field_or("normalized", true));
  TRY_ASSIGN(token.single_word, json.boolean_field_or("single_word", false));
  TRY_ASSIGN(token.lstrip, json.boolean_field_or("lstrip", false));
  TRY_ASSIGN(token.rstrip, json.boolean_field_or("rstrip", false));
  return token;
}

// A token that the vocabulary holds has its id there; the others follow it in their order. The ids
// written beside added tokens are only a reminder.
class AddedTokenReader {
 public:
  AddedTokenReader(const JsonModel& model, const NormalizerChain& normalizers, TokenTexts& texts)
      : model_(model), normalizers_(normalizers), texts_(texts), next_id_(model.ids.size()) {}

  Status read(const Json& list, AddedTokens& added) {
    return list.for_each_item([&](size_t, const Json& item) -> Status {
      TRY_ASSIGN(AddedToken token, read_added_token(item));
      if (token.content.empty()) return Status();
      TRY_ASSIGN(token.id, id_of(token.content));
      std::string pattern = token.content;
      if (token.normalized) apply_all(normalizers_, pattern);
      added.insert(token, pattern);
      patterns_.push_back(std::make_unique<std::string>(std::move(pattern)));
      return texts_.set(token.id, *patterns_.back());
    });
  }

 private:
  Result<int32_t> id_of(const std::string& content) {
    const int32_t known = model_.ids.find(content);
    if (known >= 0) return known;
    const int32_t before = new_ids_.find(content);
    if (before >= 0) return before;
    if (next_id_ >= TokenTexts::kMaxTokens) return error("tokenizer.json: too many tokens");
    new_ids_.insert(content, static_cast<int32_t>(next_id_));
    return static_cast<int32_t>(next_id_++);
  }

  const JsonModel& model_;
  const NormalizerChain& normalizers_;
  TokenTexts& texts_;
  Vocabulary new_ids_;
  size_t next_id_;
  std::vector<std::unique_ptr<std::string>> patterns_;  // texts_ points at them until it is packed
};

std::string kind_of(std::string_view model, bool byte_level) {
  return str_cat(byte_level ? "byte-level " : "", model, " (tokenizer.json)");
}

Status check_ids(const std::vector<int32_t>& ids, const TokenTexts& texts) {
  for (const int32_t id : ids) {
    if (!texts.has(id)) return error("tokenizer.json: post_processor: there is no token ", id);
  }
  return Status();
}

// A token is left out of decoded text when its string is that of a control token, whichever its id.
void mark_special(PipelineParts& parts) {
  std::array<bool, 256> begins{};  // most tokens are dismissed by their first byte
  for (const AddedToken& token : parts.added.tokens()) {
    if (token.special) begins[static_cast<unsigned char>(token.content[0])] = true;
  }
  parts.special.resize(static_cast<size_t>(parts.texts.size()));
  for (int32_t id = 0; id < parts.texts.size(); ++id) {
    const std::string_view text = parts.texts[id];
    parts.special[static_cast<size_t>(id)] = !text.empty() &&
                                             begins[static_cast<unsigned char>(text[0])] &&
                                             parts.added.is_special(text);
  }
}

std::vector<int32_t> find_end_ids(const TokenizerConfig& config, const TokenizerData& data,
                                  const JsonModel& model, const PipelineParts& parts) {
  EndTokens ends;
  for (const int64_t id : data.end_ids) ends.add_named(id);
  for (const AddedToken& token : parts.added.tokens()) {
    if (token.special) ends.add_if_spelled(token.content, token.id);
    if (config.eos_token == token.content) ends.add_named(token.id);
  }
  if (config.eos_token.has_value()) ends.add_named(model.ids.find(*config.eos_token));
  return ends.tidy(static_cast<size_t>(parts.texts.size()));
}

Status check_version(const Json& root) {
  const auto version = root.find("version");
  if (!version.has_value()) return Status();
  TRY_ASSIGN(const std::string_view text, version->string());
  if (text == "1.0") return Status();
  return error(version->path(), ": expected '1.0', found '", printable(text), "'");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerData& data) {
  // "truncation" and "padding" are for batches of training texts: whoever serves a model cuts and
  // pads nothing, and neither does transformers.
  TRY_ASSIGN(const JsonDocument document,
             JsonDocument::parse(data.tokenizer_json, "tokenizer.json"));
  const Json root = document.root();
  TRY(check_version(root));
  TRY_ASSIGN(const Json model_json, root.field("model"));
  TRY_ASSIGN(JsonModel model, read_model_vocabulary(model_json));

  PipelineParts parts;
  if (const auto json = root.find("normalizer")) TRY(read_normalizer(*json, parts.normalizers));
  AddedTokenReader added_reader(model, parts.normalizers, model.texts);
  if (const auto json = root.find("added_tokens")) TRY(added_reader.read(*json, parts.added));

  JsonPreTokenizers pretokenizers;
  if (const auto json = root.find("pre_tokenizer")) TRY(read_pretokenizer(*json, pretokenizers));
  bool byte_level = pretokenizers.byte_level;
  TRY_ASSIGN(parts.model, read_model(model_json, model, parts.added, byte_level));
  parts.pretokenizers = std::move(pretokenizers.chain);
  if (pretokenizers.byte_level && !byte_level) {
    parts.pretokenizers.push_back(make_byte_alphabet_pieces());
  }
  if (const auto json = root.find("decoder")) {
    TRY(read_decoder(*json, parts.decoders));
  } else {
    parts.decoders.push_back(make_joining_decoder());
  }

  SpecialIds special;
  if (const auto json = root.find("post_processor")) TRY(read_post_processor(*json, special));
  TRY(check_ids(special.prefix, model.texts));
  TRY(check_ids(special.suffix, model.texts));
  parts.prefix_ids = std::move(special.prefix);
  parts.suffix_ids = std::move(special.suffix);

  parts.kind = kind_of(model.type, pretokenizers.byte_level);
  parts.texts = std::move(model.texts);
  parts.texts.pack();
  mark_special(parts);
  TRY_ASSIGN(const TokenizerConfig config, read_tokenizer_config(data));
  parts.end_ids = find_end_ids(config, data, model, parts);
  return std::unique_ptr<Tokenizer>(std::make_unique<Pipeline>(std::move(parts)));
}

}  // namespace tinyvllm
