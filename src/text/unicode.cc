#include "text/unicode.h"

#include <map>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

// First code point << 11 | flags << 5 | category, of each run of characters that are alike.
constexpr uint32_t kRuns[] = {
#include "text/unicode_table.inc"
};

}  // namespace

const CharacterTable& CharacterTable::get() {
  static const CharacterTable table;
  return table;
}

CharacterTable::CharacterTable() {
  std::map<std::array<uint16_t, 256>, uint16_t> known;
  std::array<uint16_t, 256> bits;
  size_t run = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (run + 1 < std::size(kRuns) && kRuns[run + 1] >> 11 == code) run += 1;
    bits[code & 0xFF] = kRuns[run] & 0x7FF;
    if ((code & 0xFF) != 0xFF) continue;
    const auto [page, is_new] = known.try_emplace(bits, static_cast<uint16_t>(pages_.size()));
    index_[code >> 8] = page->second;
    if (!is_new) continue;
    pages_.emplace_back();
    for (size_t i = 0; i < bits.size(); ++i) pages_.back()[i] = Character(bits[i]);
  }
}

char32_t utf8_previous(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) begin -= 1;
  return utf8_next(text, begin);
}

}  // namespace tinyvllm
