// A set of strings with ids: one flat hash table over one arena of bytes, small enough for the
// caches, so that a quarter of a million tokens load in milliseconds. Immutable once built.
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
  size_t size() const { return entries_.size(); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(text_of(entry));
  }

 private:
  struct Entry {
    uint32_t offset, length;  // of the string, in arena_
    int32_t id;
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = 0;  // index + 1; 0: the slot is free
  };

  std::string_view text_of(const Entry& entry) const {
    return std::string_view(arena_).substr(entry.offset, entry.length);
  }
  // The slot that holds the text, or the free one where it belongs.
  size_t slot_of(std::string_view text, uint32_t hash) const;
  void grow(size_t slots);

  std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
  std::vector<Entry> entries_;
  std::string arena_;
};

}  // namespace tinyvllm
