// A set of strings with ids: one flat hash table over one arena of bytes, so that a quarter of a
// million tokens load in milliseconds and a lookup touches two cache lines. Immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinyvllm {

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;

  void reserve(size_t strings, size_t bytes);

  // A string that is there already gets the new id (the last one wins, as in a JSON object).
  void insert(std::string_view text, int32_t id);

  int32_t find(std::string_view text) const;
  size_t size() const { return count_; }
  size_t longest() const { return longest_; }  // bytes of the longest string

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t length = 0;
    uint32_t offset = 0;  // of the string, in arena_
    int32_t id = kNone;   // kNone: the slot is free
  };

  // The slot that holds the text, or the free one where it belongs.
  size_t slot_of(std::string_view text, uint32_t hash) const;
  void grow(size_t slots);

  std::vector<Slot> slots_;  // a power of two of them, at most half in use
  std::string arena_;
  size_t count_ = 0;
  size_t longest_ = 0;
};

}  // namespace tinyvllm
