#include "text/template/unicode.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utf8proc.h>

#include "base/utf8.h"

namespace tinyvllm::jinja::unicode {
namespace {

struct CodeRange {
  char32_t first, last;
};
struct Expansion {
  char32_t from;
  char32_t to[3];
};
#include "text/template/unicode_tables.inc"

template <size_t N>
bool contains(const CodeRange (&ranges)[N], char32_t c) {
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t point, const CodeRange& range) { return point < range.first; });
  return after != std::begin(ranges) && c <= (after - 1)->last;
}

template <size_t N>
Cased expand(const Expansion (&table)[N], char32_t c, utf8proc_int32_t otherwise) {
  Cased result;
  const auto* found =
      std::lower_bound(std::begin(table), std::end(table), c,
                       [](const Expansion& entry, char32_t point) { return entry.from < point; });
  if (found == std::end(table) || found->from != c) {
    result.add(static_cast<char32_t>(otherwise));
  } else {
    for (const char32_t part : found->to) {
      if (part != 0) result.add(part);
    }
  }
  return result;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_number_category(char32_t c) {
  const utf8proc_category_t cat = category(c);
  return cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_NL || cat == UTF8PROC_CATEGORY_NO;
}

// Unicode's Case_Ignorable: looking for the end of a word goes on past these.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view kMidWord =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return kMidWord.find(c) != std::u32string_view::npos;
}

char32_t char_before(std::string_view text, size_t& at) {
  do {
    at -= 1;
  } while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  size_t copy = at;
  return utf8_next(text, copy);
}

bool ends_word(std::string_view text, size_t begin, size_t end) {
  char32_t c = 0;
  do {
    if (begin == 0) return false;
    c = char_before(text, begin);
  } while (is_case_ignorable(c));
  if (!is_cased(c)) return false;
  do {
    if (end == text.size()) return true;
    c = utf8_next(text, end);
  } while (is_case_ignorable(c));
  return !is_cased(c);
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_alpha(char32_t c) {
  const utf8proc_category_t cat = category(c);
  return cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || contains(kOtherDigits, c); }
bool is_numeric(char32_t c) { return is_number_category(c) || contains(kOtherNumbers, c); }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || contains(kOtherLowercase, c);
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || contains(kOtherUppercase, c);
}

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool is_word(char32_t c) { return c == '_' || is_alnum(c); }

bool starts_identifier(char32_t c) {
  return c == '_' || is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool continues_identifier(char32_t c) {
  const utf8proc_category_t cat = category(c);
  return starts_identifier(c) || cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_MN ||
         cat == UTF8PROC_CATEGORY_MC || cat == UTF8PROC_CATEGORY_PC;
}

size_t space_bytes(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  size_t end = at;
  return is_space(utf8_next(text, end)) ? end - at : 0;
}

Cased to_upper(char32_t c) {
  return expand(kUpperExpansions, c, utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

Cased to_title(char32_t c) {
  return expand(kTitleExpansions, c, utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

Cased fold(char32_t c) {
  utf8proc_int32_t folded[8];
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded,
                                                         8, UTF8PROC_CASEFOLD, &boundary);
  Cased result;
  for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, 3); ++i) {
    result.add(static_cast<char32_t>(folded[i]));
  }
  return result;
}

Cased to_lower(std::string_view text, size_t at, char32_t c) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  constexpr char32_t kCapitalIWithDot = 0x130;
  Cased result;
  if (c == kCapitalIWithDot) {
    result.add('i');
    result.add(0x307);
  } else if (c == kCapitalSigma && ends_word(text, at, at + 2)) {
    result.add(kFinalSigma);
  } else {
    result.add(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
  return result;
}

std::string escape(char32_t c) {
  const char* format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(c));
  return text;
}

}  // namespace tinyvllm::jinja::unicode
