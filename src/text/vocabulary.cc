#include "text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/hash.h"

namespace tinyvllm {

void Vocabulary::reserve(size_t strings, size_t bytes) {
  arena_.reserve(bytes);
  entries_.reserve(strings);
  size_t slots = 16;
  while (slots * 3 < strings * 4) slots *= 2;
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::insert(std::string_view text, int32_t id) {
  if ((entries_.size() + 1) * 4 > slots_.size() * 3) grow(std::max<size_t>(16, slots_.size() * 2));
  const auto hash = static_cast<uint32_t>(hash_bytes(text));
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.entry != 0) {
    entries_[slot.entry - 1].id = id;
    return;
  }
  CHECK(arena_.size() + text.size() <= UINT32_MAX) << "vocabularies are checked to be under 4 GB";
  entries_.push_back(
      {static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(text.size()), id});
  arena_ += text;
  slot = {hash, static_cast<uint32_t>(entries_.size())};
}

int32_t Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return kNone;
  const Slot& slot = slots_[slot_of(text, static_cast<uint32_t>(hash_bytes(text)))];
  return slot.entry == 0 ? kNone : entries_[slot.entry - 1].id;
}

size_t Vocabulary::slot_of(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.entry == 0) return at;
    if (slot.hash == hash && text_of(entries_[slot.entry - 1]) == text) return at;
  }
}

void Vocabulary::grow(size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  const size_t mask = slots - 1;
  for (const Slot& slot : old) {
    if (slot.entry == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].entry != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace tinyvllm
