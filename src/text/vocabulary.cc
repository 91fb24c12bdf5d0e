#include "text/vocabulary.h"

#include <algorithm>

#include "base/check.h"
#include "text/hash.h"

namespace tinyvllm {

void Vocabulary::reserve(size_t strings, size_t bytes) {
  arena_.reserve(bytes);
  size_t slots = 16;
  while (slots < strings * 2) slots *= 2;
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::insert(std::string_view text, int32_t id) {
  if ((count_ + 1) * 2 > slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const auto hash = static_cast<uint32_t>(hash_bytes(text));
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id == kNone) {
    CHECK(arena_.size() + text.size() <= UINT32_MAX) << "vocabularies of over 4 GB";
    slot.hash = hash;
    slot.length = static_cast<uint32_t>(text.size());
    slot.offset = static_cast<uint32_t>(arena_.size());
    arena_ += text;
    count_ += 1;
    longest_ = std::max(longest_, text.size());
  }
  slot.id = id;
}

int32_t Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return kNone;
  return slots_[slot_of(text, static_cast<uint32_t>(hash_bytes(text)))].id;
}

size_t Vocabulary::slot_of(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kNone) return at;
    if (slot.hash == hash && slot.length == text.size() &&
        std::string_view(arena_).substr(slot.offset, slot.length) == text) {
      return at;
    }
  }
}

void Vocabulary::grow(size_t slots) {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(slots, Slot());
  const size_t mask = slots - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].id != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace tinyvllm
