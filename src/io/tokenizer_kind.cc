#include "io/tokenizer_kind.h"

#include <simdjson.h>

#include "base/strings.h"

namespace tinyvllm {
namespace {

namespace ondemand = simdjson::ondemand;

std::string gguf_kind(const GgufVocabulary& v) {
  struct Known {
    const char* model;
    const char* kind;
  };
  static constexpr Known kKnown[] = {
      {"gpt2", "byte-level BPE"},      {"llama", "SentencePiece BPE"},
      {"gemma4", "SentencePiece BPE"}, {"t5", "SentencePiece unigram"},
      {"bert", "WordPiece"},           {"rwkv", "RWKV trie"}};
  std::string kind = printable(v.model);
  for (const Known& known : kKnown) {
    if (v.model == known.model) kind = known.kind;
  }
  return v.pre.empty() ? kind : str_cat(kind, " (", printable(v.pre), ")");
}

// The largest tokenizers in use have 35 MB of JSON.
constexpr size_t kMaxJsonBytes = 256 << 20;

// Walks to what is asked for and leaves the rest of the file unread: a tokenizer.json has
// megabytes.
std::string json_kind(std::string_view json) {
  if (json.size() > kMaxJsonBytes) return "tokenizer.json";
  ondemand::parser parser;
  const simdjson::padded_string padded(json);
  ondemand::document document;
  std::string_view type;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document["model"]["type"].get_string().get(type) != simdjson::SUCCESS) {
    return "tokenizer.json";
  }
  return str_cat(printable(type), " (tokenizer.json)");
}

}  // namespace

std::string tokenizer_kind(const TokenizerData& data) {
  if (data.gguf) return gguf_kind(*data.gguf);
  if (!data.tokenizer_json.empty()) return json_kind(data.tokenizer_json);
  if (!data.sentencepiece_model.empty()) return "SentencePiece (tokenizer.model)";
  return "none";
}

bool has_chat_template(const TokenizerData& data) {
  if (!data.chat_template.empty()) return true;
  if (data.tokenizer_config_json.empty() || data.tokenizer_config_json.size() > kMaxJsonBytes) {
    return false;
  }
  ondemand::parser parser;
  const simdjson::padded_string padded(data.tokenizer_config_json);
  ondemand::document document;
  ondemand::value found;
  return parser.iterate(padded).get(document) == simdjson::SUCCESS &&
         document["chat_template"].get(found) == simdjson::SUCCESS && !found.is_null();
}

}  // namespace tinyvllm
