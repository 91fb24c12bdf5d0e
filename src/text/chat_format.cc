#include "text/chat_format.h"

#include <array>
#include <optional>
#include <simdjson.h>

namespace tinyvllm {
namespace {

namespace dom = simdjson::dom;
using NamedToken = ChatTemplate::NamedToken;

constexpr std::array<const char*, 7> kTokenNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

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
void read_tokens(const dom::object& config, std::vector<NamedToken>& tokens) {
  for (const char* name : kTokenNames) {
    dom::element value;
    if (config[name].get(value) != simdjson::SUCCESS) continue;
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS || value["content"].get(text) == simdjson::SUCCESS) {
      set_token(tokens, name, text);
    }
  }
}

// A string, or [{"name": "default", "template": "…"}, {"name": "tool_use", …}].
void read_templates(const dom::object& config, ChatFormat& format) {
  dom::element value;
  if (config["chat_template"].get(value) != simdjson::SUCCESS) return;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    format.source = text;
    return;
  }
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return;
  for (const dom::element entry : list) {
    std::string_view name;
    if (entry["name"].get(name) != simdjson::SUCCESS) continue;
    if (entry["template"].get(text) != simdjson::SUCCESS) continue;
    if (name == "default") format.source = text;
    if (name == "tool_use") format.source_with_tools = text;
  }
}

Status read_config(std::string_view json, std::string_view file, ChatFormat& format) {
  if (json.empty()) return Status();
  dom::parser parser;
  dom::object config;
  if (const auto status = parser.parse(json.data(), json.size()).get(config)) {
    return error(file, ": ", simdjson::error_message(status));
  }
  read_tokens(config, format.tokens);
  read_templates(config, format);
  return Status();
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
  if (!data.chat_template.empty()) format.source = data.chat_template;
  if (format.source.empty()) {
    return error("chat_template: the model's files carry none; give one with --chat-template FILE");
  }
  return format;
}

}  // namespace tinyvllm
