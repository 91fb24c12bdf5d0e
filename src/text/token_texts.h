// The strings of a vocabulary by id, packed into one piece of memory. Ids may have gaps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

class TokenTexts {
 public:
  // Ids are less than this; published vocabularies end near a million.
  static constexpr int64_t kMaxTokens = 1 << 22;

  TokenTexts() = default;
  TokenTexts(TokenTexts&&) = default;  // only moved: the views point into the arena
  TokenTexts& operator=(TokenTexts&&) = default;

  // A string for an id; the last one counts. The views must live until `pack`.
  Status set(int64_t id, std::string_view text);

  // Copies the strings; from here on nothing else is needed.
  void pack();

  int32_t size() const { return static_cast<int32_t>(views_.size()); }
  bool has(int64_t id) const {
    return id >= 0 && id < size() && views_[static_cast<size_t>(id)].data() != nullptr;
  }
  std::string_view operator[](int32_t id) const { return views_[static_cast<size_t>(id)]; }
  size_t memory_bytes() const {
    return views_.capacity() * sizeof(std::string_view) + arena_.capacity();
  }

 private:
  std::vector<std::string_view> views_;  // no data: no such token
  std::vector<char> arena_;
};

}  // namespace tinyvllm
