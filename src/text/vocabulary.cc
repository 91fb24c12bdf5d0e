#include "text/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "text/hash.h"

namespace tinyvllm {

Vocabulary::Key Vocabulary::key_of(std::string_view text) {
  constexpr uint32_t kLong = 63;
  if (text.size() > kShort) {
    const uint64_t hash = hash_bytes(text);
    return {0, static_cast<uint32_t>(hash) << 6 | kLong, hash};
  }
  const uint64_t bytes = load_short(text);
  const uint64_t hash = hash_number(bytes + text.size());
  return {bytes, static_cast<uint32_t>(hash) << 6 | static_cast<uint32_t>(text.size()), hash};
}

void Vocabulary::reserve(size_t strings) {
  size_t slots = 16;
  while (slots * 3 < strings * 4) slots *= 2;
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::insert(std::string_view text, int32_t id) {
  if ((count_ + 1) * 4 > slots_.size() * 3) grow(std::max<size_t>(16, slots_.size() * 2));
  const Key key = key_of(text);
  Slot& slot = slots_[slot_of(text, key)];
  if (slot.id == kNone) {
    slot.text = key.text;
    slot.tag = key.tag;
    count_ += 1;
    if (text.size() > kShort) {
      CHECK(arena_.size() + text.size() <= UINT32_MAX) << "vocabularies are checked to be smaller";
      slot.text = uint64_t{text.size()} << 32 | arena_.size();
      arena_ += text;
    }
  }
  slot.id = id;
}

int32_t Vocabulary::find(std::string_view text) const {
  return slots_.empty() ? kNone : slots_[slot_of(text, key_of(text))].id;
}

std::string_view Vocabulary::text_of(const Slot& slot) const {
  const uint32_t length = slot.tag & 63;
  if (length <= kShort) return {reinterpret_cast<const char*>(&slot.text), length};
  return std::string_view(arena_).substr(static_cast<uint32_t>(slot.text), slot.text >> 32);
}

size_t Vocabulary::slot_of(std::string_view text, const Key& key) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = key.hash >> 32 & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kNone) return at;
    if (slot.tag != key.tag) continue;
    if (text.size() <= kShort ? slot.text == key.text : text_of(slot) == text) return at;
  }
}

void Vocabulary::grow(size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    const std::string_view text = text_of(slot);
    slots_[slot_of(text, key_of(text))] = slot;
  }
}

}  // namespace tinyvllm
