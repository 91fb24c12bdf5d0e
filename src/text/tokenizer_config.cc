#include "text/tokenizer_config.h"

#include <charconv>

#include "text/json.h"
#include "text/token_texts.h"

namespace tinyvllm {
namespace {

// "</s>", or {"content": "</s>", …}
Result<std::optional<std::string>> read_token(const Json& root, std::string_view key) {
  const std::optional<Json> value = root.find(key);
  if (!value.has_value()) return std::optional<std::string>();
  if (value->kind() == Json::Kind::kObject) {
    TRY_ASSIGN(const std::string_view content, value->string_field("content"));
    return std::optional<std::string>(content);
  }
  TRY_ASSIGN(const std::string_view content, value->string());
  return std::optional<std::string>(content);
}

Result<std::optional<bool>> read_flag(const Json& root, std::string_view key) {
  const std::optional<Json> value = root.find(key);
  if (!value.has_value()) return std::optional<bool>();
  TRY_ASSIGN(const bool flag, value->boolean());
  return std::optional<bool>(flag);
}

// {"32000": {"content": "<|im_start|>", "special": true, …}, …}
Status read_added_tokens(const Json& table, std::vector<AddedToken>& tokens) {
  return table.for_each_field([&](std::string_view key, const Json& value) -> Status {
    AddedToken token;
    const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), token.id);
    const bool is_number = failure == std::errc() && end == key.data() + key.size();
    if (!is_number || token.id < 0 || token.id >= TokenTexts::kMaxTokens) {
      return error(table.path(), ": expected token ids as keys, found '", printable(key), "'");
    }
    TRY_ASSIGN(const std::string_view content, value.string_field("content"));
    token.content = content;
    TRY_ASSIGN(token.special, value.boolean_field_or("special", false));
    TRY_ASSIGN(token.single_word, value.boolean_field_or("single_word", false));
    TRY_ASSIGN(token.lstrip, value.boolean_field_or("lstrip", false));
    TRY_ASSIGN(token.rstrip, value.boolean_field_or("rstrip", false));
    tokens.push_back(std::move(token));
    return Status();
  });
}

Status read_file(std::string_view text, const char* name, TokenizerConfig& config) {
  if (text.empty()) return Status();
  TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(text, name));
  const Json root = document.root();
  if (root.kind() != Json::Kind::kObject) return root.wrong("an object");
  TRY_ASSIGN(const auto bos, read_token(root, "bos_token"));
  TRY_ASSIGN(const auto eos, read_token(root, "eos_token"));
  if (bos.has_value()) config.bos_token = bos;
  if (eos.has_value()) config.eos_token = eos;
  TRY_ASSIGN(const auto add_bos, read_flag(root, "add_bos_token"));
  TRY_ASSIGN(const auto add_eos, read_flag(root, "add_eos_token"));
  if (add_bos.has_value()) config.add_bos_token = add_bos;
  if (add_eos.has_value()) config.add_eos_token = add_eos;
  if (const auto value = root.find("tokenizer_class")) {
    TRY_ASSIGN(const std::string_view type, value->string());
    config.tokenizer_class = type;
  }
  if (const auto table = root.find("added_tokens_decoder")) {
    TRY(read_added_tokens(*table, config.added_tokens));
  }
  return Status();
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(const TokenizerData& data) {
  TokenizerConfig config;
  TRY(read_file(data.special_tokens_map_json, "special_tokens_map.json", config));
  TRY(read_file(data.tokenizer_config_json, "tokenizer_config.json", config));
  return config;
}

}  // namespace tinyvllm
