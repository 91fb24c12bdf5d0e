#include "text/charsmap.h"

#include <cstring>

namespace tinyvllm {
namespace {

// A unit of the double array: the byte that leads to it, whether a value hangs below it, and how
// far away its children are; or, where it is a value, that value.
uint32_t label_of(uint32_t unit) { return unit & (1u << 31 | 0xFFu); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
uint32_t value_of(uint32_t unit) { return unit & ~(1u << 31); }

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  uint32_t trie_bytes = 0;
  if (bytes.size() < sizeof trie_bytes) return error("precompiled_charsmap: cut short");
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  if (trie_bytes > bytes.size() || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0) {
    return error("precompiled_charsmap: a trie of ", trie_bytes, " bytes in a table of ",
                 bytes.size());
  }
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  map.replacements_ = bytes.substr(trie_bytes);
  if (!map.replacements_.ends_with('\0')) map.replacements_ += '\0';
  return map;
}

Charsmap::Match Charsmap::find(std::string_view text, bool longest) const {
  Match match;
  if (units_.empty()) return match;
  size_t at = offset_of(units_[0]);
  for (size_t length = 1; length <= text.size(); ++length) {
    const auto byte = static_cast<unsigned char>(text[length - 1]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (at >= units_.size() || value_of(units_[at]) >= replacements_.size()) break;
    match.length = length;
    match.replacement = replacements_.data() + value_of(units_[at]);
    if (!longest) break;
  }
  return match;
}

}  // namespace tinyvllm
