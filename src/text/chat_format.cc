#include "text/chat_format.h"

#include <array>
#include <optional>
#include <string>

#include "text/json.h"

namespace tinyvllm {
namespace {

using NamedToken = ChatTemplate::NamedToken;

constexpr std::array<const char*, 7> kTokenNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
constexpr char kAdditional[] = "additional_special_tokens";

void set_token(std::vector<NamedToken>& tokens, std::string_view name, std::string_view text) {
  for (NamedToken& token : tokens) {
    if (token.name == name) {
      token.text = text;
      return;
    }
  }
  tokens.push_back({std::string(name), std::string(text)});
}

// "bos_token": "<s>", or {"content": "<s>", …}. Anything else says nothing.
void read_token(const Json& value, std::string_view name, std::vector<NamedToken>& tokens) {
  const bool is_object = value.kind() == Json::Kind::kObject;
  const Result<std::string_view> text = is_object ? value.string_field("content") : value.string();
  if (text.ok()) set_token(tokens, name, text.value());
}

// "additional_special_tokens": ["<a>", {"content": "<b>", …}]
Status read_additional(const Json& config, std::vector<NamedToken>& tokens) {
  const auto value = config.find(kAdditional);
  if (!value.has_value() || value->kind() != Json::Kind::kArray) return Status();
  std::vector<NamedToken> items;
  TRY(value->for_each_item([&](size_t index, const Json& item) {
    read_token(item, std::to_string(index), items);
    return Status();
  }));
  if (items.empty()) return Status();
  std::erase_if(tokens, [](const NamedToken& token) { return token.name == kAdditional; });
  NamedToken& all = tokens.emplace_back(NamedToken{kAdditional, ""});
  for (NamedToken& item : items) all.list.push_back(std::move(item.text));
  return Status();
}

Status read_tokens(const Json& config, std::vector<NamedToken>& tokens) {
  for (const char* name : kTokenNames) {
    if (const auto value = config.find(name)) read_token(*value, name, tokens);
  }
  TRY(read_additional(config, tokens));
  const auto extra = config.find("extra_special_tokens");
  if (!extra.has_value() || extra->kind() != Json::Kind::kObject) return Status();
  return extra->for_each_field([&](std::string_view name, const Json& value) {
    read_token(value, name, tokens);
    return Status();
  });
}

// A string, or [{"name": "default", "template": "…"}, {"name": "tool_use", …}].
Status read_templates(const Json& config, ChatFormat& format) {
  const auto value = config.find("chat_template");
  if (!value.has_value()) return Status();
  if (value->kind() == Json::Kind::kString) {
    TRY_ASSIGN(format.source, value->string());
    return Status();
  }
  return value->for_each_item([&](size_t, const Json& entry) -> Status {
    TRY_ASSIGN(const std::string_view name, entry.string_field("name"));
    TRY_ASSIGN(const std::string_view source, entry.string_field("template"));
    if (name == "default") format.source = source;
    if (name == "tool_use") format.source_with_tools = source;
    return Status();
  });
}

Status read_config(std::string_view json, const char* file, ChatFormat& format) {
  if (json.empty()) return Status();
  TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(json, file));
  const Json root = document.root();
  if (root.kind() != Json::Kind::kObject) return root.wrong("an object");
  TRY(read_tokens(root, format.tokens));
  return read_templates(root, format);
}

void read_gguf_tokens(const GgufVocabulary& vocabulary, std::vector<NamedToken>& tokens) {
  const auto add = [&](const char* name, std::optional<int64_t> id) {
    if (!id.has_value() || *id < 0 || *id >= static_cast<int64_t>(vocabulary.tokens.size())) return;
    set_token(tokens, name, vocabulary.tokens[static_cast<size_t>(*id)]);
  };
  add("bos_token", vocabulary.bos);
  add("eos_token", vocabulary.eos);
  add("unk_token", vocabulary.unknown);
  add("sep_token", vocabulary.separator);
  add("pad_token", vocabulary.padding);
  add("mask_token", vocabulary.mask);
}

}  // namespace

Result<ChatFormat> read_chat_format(const TokenizerData& data) {
  ChatFormat format;
  if (data.gguf.has_value()) read_gguf_tokens(*data.gguf, format.tokens);
  TRY(read_config(data.special_tokens_map_json, "special_tokens_map.json", format));
  TRY(read_config(data.tokenizer_config_json, "tokenizer_config.json", format));
  if (!data.chat_template.empty()) {
    format.source = data.chat_template;
    format.source_with_tools = data.chat_template_with_tools;
  }
  return format;
}

}  // namespace tinyvllm
