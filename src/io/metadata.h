// A model file's key-value part, flattened: GGUF keys as they are ("llama.block_count"), JSON
// objects by dotted path ("rope_scaling.factor"). Every getter checks the type and names the key
// that is missing or of the wrong kind. Strings are views into the mapped file, or (JSON, whose
// strings have escapes) into this object.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "io/gguf_types.h"

namespace tinyvllm {

// A GGUF array of numbers or flags stays packed until it is asked for; JSON arrays are vectors.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string_view, PackedArray, std::vector<bool>,
                 std::vector<int64_t>, std::vector<double>, std::vector<std::string_view>>;

const char* metadata_kind(const MetadataValue& value);  // "a string", "an array of numbers", …

class Metadata {
 public:
  Metadata() = default;
  Metadata(Metadata&&) = default;
  Metadata& operator=(Metadata&&) = default;

  // False when the key was there before (the first value stays).
  bool insert(std::string_view key, MetadataValue value);

  // Removes a key and hands its value over: the vocabulary's long arrays move out this way.
  std::optional<MetadataValue> take(std::string_view key);

  // Keeps a string for as long as this object lives.
  std::string_view own(std::string text);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const MetadataValue* find(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& values() const { return values_; }

  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;  // an integer counts as a number; NaN does not
  Result<std::string_view> string(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<bool>> booleans(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;

  // The same, but an absent key gives the fallback. A key of the wrong type is still an error.
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
  std::deque<std::string> owned_;
};

}  // namespace tinyvllm
