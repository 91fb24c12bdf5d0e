// The metadata of a GGUF file that is being made, each pair already in the bytes that the file will
// hold. Pairs of another file are taken over as they are, so nothing is lost on the way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf_types.h"

namespace tinyvllm {

// A pair as it lies in a file: key, type and value.
struct GgufPair {
  std::string_view key;
  std::string_view bytes;
};

class GgufPairs {
 public:
  // A key that is there already gets the new value, in its old place.
  void u32(std::string_view key, uint32_t value);
  void f32(std::string_view key, float value);
  void flag(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, std::span<const std::string> values);
  void i32s(std::string_view key, std::span<const int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);
  void flags(std::string_view key, const std::vector<bool>& values);
  void copy(const GgufPair& pair);

  void remove(std::string_view key);
  bool has(std::string_view key) const;

  size_t count() const { return pairs_.size(); }
  void append_to(std::string& bytes) const;

 private:
  struct Pair {
    std::string key;
    std::string bytes;
  };
  void set(std::string_view key, std::string bytes);

  std::vector<Pair> pairs_;
};

}  // namespace tinyvllm
