#include "text/normal_form.h"

#include <algorithm>
#include <utf8proc.h>
#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace tinyvllm {
namespace {

struct Range {
  char32_t first, last;
};

// Characters that every form leaves alone and that join nothing before them: the bulk of all text.
// Sorted; what is in none of these ranges takes the long way.
constexpr Range kPlainInAllForms[] = {
    {0x0000, 0x009F}, {0x0391, 0x03A1}, {0x03B1, 0x03C9}, {0x0410, 0x0418},   {0x041A, 0x0438},
    {0x043A, 0x044F}, {0x05D0, 0x05EA}, {0x0627, 0x064A}, {0x0E01, 0x0E30},   {0x2010, 0x2010},
    {0x2012, 0x2016}, {0x2018, 0x2023}, {0x2581, 0x2581}, {0x3001, 0x3020},   {0x3041, 0x304B},
    {0x30A1, 0x30AB}, {0x3400, 0x4DB5}, {0x4E00, 0x9FD5}, {0x1F300, 0x1F6D0},
};
// More of these, for the composing canonical form alone.
constexpr Range kPlainInNfc[] = {
    {0x0000, 0x02FF}, {0x0391, 0x03CE}, {0x0400, 0x0481},   {0x05D0, 0x05EA}, {0x0620, 0x064A},
    {0x0E01, 0x0E33}, {0x2002, 0x2027}, {0x2030, 0x205E},   {0x2190, 0x21FF}, {0x2500, 0x27BF},
    {0x3000, 0x3020}, {0x3041, 0x3096}, {0x30A1, 0x30FA},   {0x3400, 0x4DB5}, {0x4E00, 0x9FD5},
    {0xAC00, 0xD7A3}, {0xFF01, 0xFF5E}, {0x1F300, 0x1F6D0},
};

template <size_t n>
bool is_in(const Range (&ranges)[n], char32_t c) {
  const Range* range = std::upper_bound(
      ranges, ranges + n, c, [](char32_t value, const Range& r) { return value < r.first; });
  return range != ranges && c <= range[-1].last;
}

bool is_plain(char32_t c, NormalForm form) {
  return form == NormalForm::kNfc ? is_in(kPlainInNfc, c) : is_in(kPlainInAllForms, c);
}

utf8proc_option_t options_for(NormalForm form) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0) |
                                        (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE));
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Accents on one letter, in their canonical order. utf8proc would swap neighbours until all is in
// order, which takes quadratic time on text made of accents.
void sort_accents(std::vector<utf8proc_int32_t>& characters) {
  for (size_t begin = 0; begin < characters.size(); ++begin) {
    if (combining_class(characters[begin]) == 0) continue;
    size_t end = begin;
    while (end < characters.size() && combining_class(characters[end]) != 0) end += 1;
    std::stable_sort(characters.begin() + static_cast<std::ptrdiff_t>(begin),
                     characters.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

// One stretch of text without inert characters.
void append_normalized(std::string_view text, NormalForm form, std::string& out) {
  std::vector<utf8proc_int32_t> characters;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t parts[32];
    int boundary = 0;
    const auto c = static_cast<utf8proc_int32_t>(utf8_next(text, at));
    const auto decompose = static_cast<utf8proc_option_t>(
        UTF8PROC_DECOMPOSE |
        (form == NormalForm::kNfkc || form == NormalForm::kNfkd ? UTF8PROC_COMPAT : 0));
    const utf8proc_ssize_t count = utf8proc_decompose_char(c, parts, 32, decompose, &boundary);
    if (count >= 0 && count <= 32) {
      characters.insert(characters.end(), parts, parts + count);
    } else {
      characters.push_back(c);
    }
  }
  sort_accents(characters);
  utf8proc_ssize_t length = static_cast<utf8proc_ssize_t>(characters.size());
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) {
    length = utf8proc_normalize_utf32(characters.data(), length, options_for(form));
  }
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    utf8_append(out, static_cast<char32_t>(characters[static_cast<size_t>(i)]));
  }
}

}  // namespace

void normalize_unicode(std::string& text, NormalForm form) {
  const CharacterTable& table = CharacterTable::get();
  std::string out;
  size_t copied = 0;    // out holds what text[0..copied) becomes
  size_t previous = 0;  // begin of the letter that the next character may join
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      previous = at++;
      continue;
    }
    const size_t begin = at;
    const char32_t c = utf8_next(text, at);
    if (is_plain(c, form) || table[c].is_inert()) {
      previous = table[c].is_inert() ? at : begin;
      continue;
    }
    while (at < text.size()) {
      size_t after = at;
      const char32_t next = utf8_next(text, after);
      if (is_plain(next, form) || table[next].is_inert()) break;
      at = after;
    }
    out.append(text, copied, previous - copied);
    append_normalized(std::string_view(text).substr(previous, at - previous), form, out);
    copied = at;
    previous = at;
  }
  if (copied == 0) return;
  out.append(text, copied, std::string::npos);
  text = std::move(out);
}

}  // namespace tinyvllm
