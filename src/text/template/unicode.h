// Characters as Python's str methods classify and change them. Everything takes code points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinyvllm::jinja::unicode {

bool is_space(char32_t c);
bool is_line_break(char32_t c);  // where str.splitlines() splits; "\r\n" is for the caller
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);  // what repr() leaves as it is
bool is_word(char32_t c);       // \w of a regular expression
bool starts_identifier(char32_t c);
bool continues_identifier(char32_t c);
inline bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
inline bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

// Bytes of the white space character that `text` has at `at`; 0 if there is none.
size_t space_bytes(std::string_view text, size_t at);

// One character in another case may be several.
struct Cased {
  char32_t chars[3] = {0, 0, 0};
  int count = 0;

  void add(char32_t c) { chars[count++] = c; }
};
Cased to_upper(char32_t c);
Cased to_title(char32_t c);
Cased fold(char32_t c);

// Lower case of the character at byte `at` of `text`: a capital sigma at the end of a word is
// special.
Cased to_lower(std::string_view text, size_t at, char32_t c);

// As Python writes a character that it does not show: \xe9, \u6f22, \U0001f600.
std::string escape(char32_t c);

}  // namespace tinyvllm::jinja::unicode
