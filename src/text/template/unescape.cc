// The inside of a string literal. Jinja hands it to Python's "unicode-escape" codec after writing
// every character beyond ASCII as an escape of its own, and both halves of that show: an unknown
// escape stays as it is, and a backslash before such a character swallows the other's backslash.
#include <string>

#include "base/utf8.h"
#include "text/template/lexer.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
  return -1;
}

// \xHH, \uHHHH, \UHHHHHHHH: exactly `digits` of them.
char32_t hex_escape(std::string_view literal, size_t& at, int digits) {
  char32_t code = 0;
  for (int i = 0; i < digits; ++i, ++at) {
    const int digit = at < literal.size() ? hex_digit(literal[at]) : -1;
    if (digit < 0) fail("an escape in a string needs ", digits, " hexadecimal digits");
    code = code * 16 + static_cast<char32_t>(digit);
  }
  if (code > kLastCodePoint) fail("an escape in a string is beyond U+10FFFF");
  if (code >= 0xD800 && code < 0xE000)
    fail("an escape in a string is a surrogate, not a character");
  return code;
}

char32_t octal_escape(std::string_view literal, size_t& at) {
  char32_t code = 0;
  for (int i = 0; i < 3 && at < literal.size() && literal[at] >= '0' && literal[at] <= '7'; ++i) {
    code = code * 8 + static_cast<char32_t>(literal[at++] - '0');
  }
  return code;
}

void undo_escape(std::string_view literal, size_t& at, std::string& out) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
  const char c = literal[at];
  if (const size_t simple = kNames.find(c); simple != std::string_view::npos) {
    out += kMeaning[simple];
    at += 1;
  } else if (c == '\n') {
    at += 1;
  } else if (c == 'x' || c == 'u' || c == 'U') {
    at += 1;
    utf8_append(out, hex_escape(literal, at, c == 'x' ? 2 : c == 'u' ? 4 : 8));
  } else if (c >= '0' && c <= '7') {
    utf8_append(out, octal_escape(literal, at));
  } else if (c == 'N') {
    fail("characters by name (\\N{...}) are not supported in strings");
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    out += unicode::escape(utf8_next(literal, at));
  } else {
    out += '\\';
    out += c;
    at += 1;
  }
}

}  // namespace

std::string unescape(std::string_view literal) {
  std::string out;
  out.reserve(literal.size());
  for (size_t at = 0; at < literal.size();) {
    if (literal[at] != '\\') {
      out += literal[at++];
    } else {
      at += 1;
      undo_escape(literal, at, out);
    }
  }
  return out;
}

}  // namespace tinyvllm::jinja
