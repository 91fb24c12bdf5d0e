// What a model's files say about text, in plain form. io fills it, text reads it; neither sees the
// other. The views point into mapped files and live as long as the io::ModelFiles they came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tinyvllm {

// The `tokenizer.ggml.*` metadata of a GGUF file. Lengths agree where both are present: io checks.
struct GgufVocabulary {
  std::string_view model;  // "gpt2", "llama", "t5"
  std::string_view pre;    // name of the pre-tokenizer; empty when the file has none
  std::vector<std::string_view> tokens;
  std::vector<float> scores;   // empty, or one per token
  std::vector<int32_t> types;  // empty, or one per token: kNormal…kByte below
  std::vector<std::string_view> merges;
  std::string_view precompiled_charsmap;

  std::optional<int64_t> bos, eos, eot, eom, unknown, separator, padding, mask;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;

  enum TokenType : int32_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
  };
};

struct TokenizerData {
  std::optional<GgufVocabulary> gguf;

  // A Hugging Face folder's files as they are; empty when absent.
  std::string_view tokenizer_json;
  std::string_view tokenizer_config_json;
  std::string_view special_tokens_map_json;
  std::string_view sentencepiece_model;  // tokenizer.model

  // The conversation format: a GGUF's `tokenizer.chat_template`, or a folder's chat_template.jinja.
  // (Older folders keep it inside tokenizer_config.json, which text reads itself.)
  std::string_view chat_template;
  std::string_view chat_template_with_tools;  // a GGUF's `tokenizer.chat_template.tool_use`

  // End-of-sequence ids that config.json or generation_config.json add to the tokenizer's own.
  std::vector<int64_t> end_ids;
};

}  // namespace tinyvllm
