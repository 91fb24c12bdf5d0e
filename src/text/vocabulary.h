// A set of strings with ids: a flat hash table that holds short strings itself and long ones in an
// arena, so that looking a token up touches one line of memory. Immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinyvllm {

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;

  void reserve(size_t strings);

  // A string that is there already gets the new id (the last one wins, as in a JSON object).
  void insert(std::string_view text, int32_t id);

  int32_t find(std::string_view text) const;
  size_t size() const { return count_; }
  size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot) + arena_.capacity(); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.id != kNone) visit(text_of(slot));
    }
  }

 private:
  static constexpr size_t kShort = 8;  // strings of up to so many bytes are kept in their slot

  struct Slot {
    uint64_t text =
        0;             // the bytes of a short string; of a long one, length << 32 | place in arena_
    uint32_t tag = 0;  // hash << 6 | length, or 63 for all long strings
    int32_t id = kNone;  // kNone: the slot is free
  };
  struct Key {
    uint64_t text;  // as in a slot, for short strings
    uint32_t tag;
    uint64_t hash;
  };

  static Key key_of(std::string_view text);
  std::string_view text_of(const Slot& slot) const;
  // The slot that holds the text, or the free one where it belongs.
  size_t slot_of(std::string_view text, const Key& key) const;
  void grow(size_t slots);

  std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
  std::string arena_;
  size_t count_ = 0;
};

}  // namespace tinyvllm
