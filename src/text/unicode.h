// What a character is, to the tokenizers that were trained on it. The data (unicode_table.inc)
// follows the `tokenizers` package to the last code point; tools/unicode_tables.py says how.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinyvllm {

// General categories of Unicode 16.
enum class Category : uint8_t {
  // clang-format off
  kCn, kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs,
  kPe, kPi, kPf, kPo, kSm, kSc, kSk, kSo, kZs, kZl, kZp, kCc, kCf, kCs, kCo,
  // clang-format on
};

class Character {
 public:
  explicit constexpr Character(uint16_t bits = 0) : bits_(bits) {}

  Category category() const { return static_cast<Category>(bits_ & 31); }
  bool is_letter() const { return in(Category::kLu, Category::kLo); }
  bool is_mark() const { return in(Category::kMn, Category::kMe); }
  bool is_number() const { return in(Category::kNd, Category::kNo); }

  bool is_recent() const { return flag(0); }       // not in Unicode 14
  bool is_inert() const { return flag(1); }        // took no part in normalisation in Unicode 9
  bool is_punctuation() const { return flag(2); }  // to the step "Punctuation"
  bool is_numeric() const { return flag(3); }      // to the step "Digits"
  bool is_accent() const { return flag(4); }       // to the step "StripAccents"
  bool is_word() const { return flag(5); }  // to single_word tokens and the step "Whitespace"

 private:
  bool in(Category first, Category last) const { return category() >= first && category() <= last; }
  bool flag(int index) const { return (bits_ >> (5 + index) & 1) != 0; }

  uint16_t bits_;
};

class CharacterTable {
 public:
  // Made on first use (under a millisecond), shared by all threads.
  static const CharacterTable& get();

  // Code points above U+10FFFF must not be asked for.
  Character operator[](char32_t c) const { return pages_[index_[c >> 8]][c & 0xFF]; }

 private:
  using Page = std::array<Character, 256>;
  CharacterTable();

  std::array<uint16_t, 0x1100> index_;
  std::vector<Page> pages_;  // each different page once
};

// White space as Unicode defines it; the same set in every version since 6.3.
constexpr bool is_space(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// The character that ends at text[end], where text is well-formed and end > 0.
char32_t utf8_previous(std::string_view text, size_t end);

}  // namespace tinyvllm
