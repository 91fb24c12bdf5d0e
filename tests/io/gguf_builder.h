// Writes small GGUF files in memory, right by default and wrong on request: the tests break them.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "io/gguf_types.h"

namespace tinyvllm {

template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// A GGUF string: 64-bit length, then the bytes.
inline std::string gguf_string(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

class GgufBuilder {
 public:
  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the tensor data; write general.alignment yourself

  GgufBuilder& pair(std::string_view key, GgufType type, const std::string& value) {
    return raw_pair(gguf_string(key) + raw(static_cast<uint32_t>(type)) + value);
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    return pair(key, GgufType::kString, gguf_string(value));
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) {
    return pair(key, GgufType::kU32, raw(value));
  }
  GgufBuilder& f32(std::string_view key, float value) {
    return pair(key, GgufType::kF32, raw(value));
  }
  GgufBuilder& flag(std::string_view key, bool value) {
    return pair(key, GgufType::kBool, raw<uint8_t>(value));
  }
  template <class T>
  GgufBuilder& array(std::string_view key, GgufType type, const std::vector<T>& values) {
    std::string bytes = raw(static_cast<uint32_t>(type)) + raw<uint64_t>(values.size());
    for (const T& value : values) bytes += raw(value);
    return pair(key, GgufType::kArray, bytes);
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes =
        raw(static_cast<uint32_t>(GgufType::kString)) + raw<uint64_t>(values.size());
    for (const std::string& value : values) bytes += gguf_string(value);
    return pair(key, GgufType::kArray, bytes);
  }
  GgufBuilder& raw_pair(const std::string& bytes) {
    pairs_.push_back(bytes);
    return *this;
  }

  // Dimensions as the file has them, innermost first. The data is `bytes` bytes of a pattern.
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dims, DType dtype,
                      uint64_t bytes) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    raw_tensor(name, dims, static_cast<uint32_t>(dtype), data_.size());
    for (uint64_t i = 0; i < bytes; ++i) data_ += static_cast<char>(i * 7 + tensors_.size());
    return *this;
  }
  GgufBuilder& raw_tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                          uint64_t offset) {
    std::string bytes = gguf_string(name) + raw<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t size : dims) bytes += raw(size);
    tensors_.push_back(bytes + raw(type) + raw(offset));
    return *this;
  }

  // `boundaries`, when given, gets the offset of every structural piece.
  std::string build(std::vector<size_t>* boundaries = nullptr) const {
    std::string file;
    const auto add = [&](const std::string& bytes) {
      if (boundaries != nullptr) boundaries->push_back(file.size());
      file += bytes;
    };
    add(raw(magic));
    add(raw(version));
    add(raw<uint64_t>(tensors_.size()));
    add(raw<uint64_t>(pairs_.size()));
    for (const std::string& pair : pairs_) add(pair);
    for (const std::string& tensor : tensors_) add(tensor);
    if (!tensors_.empty()) {
      add(std::string((alignment - file.size() % alignment) % alignment, '\0'));
      add(data_);
    }
    return file;
  }

 private:
  std::vector<std::string> pairs_;
  std::vector<std::string> tensors_;
  std::string data_;
};

// A tiny but complete model file: a vocabulary of three and two tensors.
inline GgufBuilder tiny_gguf() {
  GgufBuilder file;
  file.text("general.architecture", "llama").u32("llama.block_count", 2);
  file.f32("llama.rope.freq_base", 1e4f).text("tokenizer.ggml.model", "llama");
  file.strings("tokenizer.ggml.tokens", {"<unk>", "<s>",
                                         "\xE2\x96\x81"
                                         "a"});
  file.array<float>("tokenizer.ggml.scores", GgufType::kF32, {0, 0, -1});
  file.array<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {2, 3, 1});
  file.u32("tokenizer.ggml.bos_token_id", 1).flag("tokenizer.ggml.add_bos_token", true);
  file.tensor("token_embd.weight", {64, 3}, DType::kQ4_1, 120);
  file.tensor("output_norm.weight", {64}, DType::kF32, 256);
  return file;
}

}  // namespace tinyvllm
