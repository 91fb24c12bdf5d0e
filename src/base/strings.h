// Small string helpers that the standard library of our compilers lacks.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace tinyvllm {

// str_cat("layer ", 3, " of ", 30): the values as an ostream would print them, joined.
template <class... Parts>
std::string str_cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// 98362432 → "98.4 MB", in powers of 1000.
std::string human_bytes(double bytes);

// 134515008 → "134.5M": counts of parameters and tokens.
std::string human_count(double count);

// 49152 → "49,152".
std::string group_digits(int64_t number);

// A file's or client's text made safe to print in a one-line message: control characters and bytes
// that are not UTF-8 are written as \xNN, and what is longer than `limit` bytes is cut with "…".
std::string printable(std::string_view text, size_t limit = 80);

}  // namespace tinyvllm
