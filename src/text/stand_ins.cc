#include "text/stand_ins.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

constexpr char32_t kThreeBytes = 0x800;
constexpr char32_t kFourBytes = 0x10000;

struct StandIn {
  Category category;
  char32_t three_bytes, four_bytes;
};
constexpr StandIn kStandIns[] = {
    {Category::kLu, 0x1E00, 0x10400}, {Category::kLl, 0x1E01, 0x10428},
    {Category::kLm, 0x1D2C, 0x16F93}, {Category::kLo, 0x0904, 0x10000},
    {Category::kMn, 0x1AB0, 0x101FD}, {Category::kMc, 0x0903, 0x11000},
    {Category::kNd, 0x0966, 0x104A0}, {Category::kNl, 0x2160, 0x10140},
    {Category::kNo, 0x2070, 0x10107}, {Category::kPd, 0x2010, 0x10EAD},
    {Category::kPo, 0x2016, 0x10100}, {Category::kSm, 0x2044, 0x1D6C1},
    {Category::kSc, 0x20A0, 0x1E2FF}, {Category::kSo, 0x2100, 0x10137},
    {Category::kCf, 0x2060, 0x1BCA0}, {Category::kCn, 0xFFFE, 0x1FFFE},
};
constexpr char32_t kHanStandIn = 0x20000;
constexpr char32_t kMongolianVowelSeparator = 0x180E;

// Ideographs that came with Unicode 15 and 15.1.
bool is_recent_han(char32_t c) {
  return (c >= 0x31350 && c <= 0x323AF) || (c >= 0x2EBF0 && c <= 0x2EE5D);
}

// Of three bytes, spelled or as \x{…}.
std::set<char32_t> named_in(std::string_view pattern) {
  std::set<char32_t> named;
  for (size_t at = 0; at < pattern.size();) {
    char32_t c = 0;
    if (pattern.substr(at).starts_with("\\x{")) {
      uint32_t value = 0;
      std::from_chars(pattern.data() + at + 3, pattern.data() + pattern.size(), value, 16);
      c = value;
      at += 3;
    } else {
      c = utf8_next(pattern, at);
    }
    if (c >= kThreeBytes && c < kFourBytes) named.insert(c);
  }
  return named;
}

}  // namespace

StandIns::StandIns(std::string_view pattern) {
  const std::set<char32_t> named = named_in(pattern);
  if (named.empty()) return;
  std::set<char32_t> begins = {kThreeBytes};
  for (const char32_t c : named) begins.insert({c, c + 1});
  const CharacterTable& table = CharacterTable::get();
  for (auto begin = begins.begin(); begin != begins.end(); ++begin) {
    const auto next = std::next(begin);
    Stretch stretch{*begin};
    for (char32_t c = *begin; c < (next == begins.end() ? kFourBytes : *next); ++c) {
      char32_t& known = stretch.known[static_cast<size_t>(table[c].category())];
      if (known == 0 && !table[c].is_recent() && c != kMongolianVowelSeparator) known = c;
    }
    stretches_.push_back(stretch);
  }
}

char32_t StandIns::instead_of(char32_t c, Category category) const {
  if (is_recent_han(c)) return kHanStandIn;
  if (c < kFourBytes && !stretches_.empty()) {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), c,
                                        [](char32_t a, const Stretch& b) { return a < b.begin; });
    const char32_t known = std::prev(after)->known[static_cast<size_t>(category)];
    return known == 0 ? c : known;
  }
  for (const StandIn& row : kStandIns) {
    if (row.category == category) return c < kFourBytes ? row.three_bytes : row.four_bytes;
  }
  return c;
}

std::optional<std::string> StandIns::put_into(std::string_view text) const {
  const CharacterTable& table = CharacterTable::get();
  std::optional<std::string> out;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xE0) {
      at += 1;  // all of these characters are old: U+0800 and up take three bytes
      continue;
    }
    const size_t begin = at;
    const char32_t c = utf8_next(text, at);
    char32_t instead = c;
    if (table[c].is_recent()) instead = instead_of(c, table[c].category());
    if (c == kMongolianVowelSeparator) instead = instead_of(c, Category::kCf);
    if (instead == c) continue;
    if (!out.has_value()) out = std::string(text);
    std::string bytes;
    utf8_append(bytes, instead);
    out->replace(begin, at - begin, bytes);
  }
  return out;
}

}  // namespace tinyvllm
