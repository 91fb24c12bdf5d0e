// What a fuzz target does with a file that was accepted: reads everything it was promised.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/metadata.h"
#include "io/model_files.h"
#include "io/model_summary.h"
#include "io/weight_source.h"

namespace tinyvllm::fuzz {

inline volatile uint64_t sink;  // keeps reads from being optimised away

inline void touch(std::string_view bytes) {
  uint64_t sum = 0;
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
  sink = sink + sum;
}

inline void touch(const WeightTensor& tensor) {
  touch(tensor.name);
  touch({static_cast<const char*>(tensor.view.data), tensor.view.bytes()});
}

// Every getter on every key: a value or words, whatever the type.
inline void touch(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    touch(metadata_kind(value));
    (void)metadata.integer_or(key, 0);
    (void)metadata.number_or(key, 0);
    (void)metadata.boolean_or(key, false);
    (void)metadata.integers(key);
    (void)metadata.numbers(key);
    if (const auto text = metadata.string_or(key, ""); text.ok()) touch(text.value());
    if (const auto list = metadata.strings(key); list.ok()) {
      for (const std::string_view text : list.value()) touch(text);
    }
  }
}

inline void touch(const GgufVocabulary& v) {
  for (const std::string_view token : v.tokens) touch(token);
  for (const std::string_view merge : v.merges) touch(merge);
  touch(v.precompiled_charsmap);
  CHECK(v.scores.empty() || v.scores.size() == v.tokens.size());
  CHECK(v.types.empty() || v.types.size() == v.tokens.size());
  for (const auto& id : {v.bos, v.eos, v.eot, v.eom, v.unknown, v.separator, v.padding, v.mask}) {
    CHECK(!id || (*id >= 0 && *id < static_cast<int64_t>(v.tokens.size())));
  }
}

inline void touch(const ModelFiles& files) {
  touch(files.metadata());
  const TokenizerData& text = files.tokenizer();
  for (const std::string_view bytes : {text.tokenizer_json, text.tokenizer_config_json,
                                       text.special_tokens_map_json, text.chat_template}) {
    touch(bytes);
  }
  const WeightSource& weights = files.weights();
  for (const WeightTensor& tensor : weights.tensors()) {
    touch(tensor);
    CHECK(weights.get(tensor.name, tensor.view.shape).ok());
  }
  CHECK(!weights.get("", {1}).ok());
  const Result<ModelSummary> summary = summarize(files);
  if (!summary.ok()) return;
  CHECK(summary.value().bytes_per_token <= summary.value().total.bytes);
  (void)kv_bytes(summary.value(), summary.value().context_length.value_or(0));
}

// A folder for the whole run of a target, in memory where the system offers that.
class Folder {
 public:
  Folder() {
    std::error_code code;
    const std::filesystem::path memory = "/dev/shm";
    const auto root = std::filesystem::is_directory(memory, code)
                          ? memory
                          : std::filesystem::temp_directory_path();
    std::string pattern = (root / "tinyvllm-fuzz-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern;
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path(std::string_view name = "") const { return path_ + "/" + std::string(name); }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << bytes;
  }
  void remove(std::string_view name) const { std::filesystem::remove(path(name)); }

 private:
  std::string path_;
};

}  // namespace tinyvllm::fuzz
