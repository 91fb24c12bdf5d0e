#include "base/strings.h"

#include <cstdio>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

std::string scaled(double value, const char* const* units, int count, const char* separator) {
  int unit = 0;
  while (value >= 999.95 && unit + 1 < count) {
    value /= 1000;
    unit += 1;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s%s" : "%.1f%s%s", value, separator,
                units[unit]);
  return text;
}

}  // namespace

std::string human_bytes(double bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return scaled(bytes, kUnits, 6, " ");
}

std::string human_count(double count) {
  static const char* const kUnits[] = {"", "K", "M", "B", "T"};
  return scaled(count, kUnits, 5, "");
}

std::string group_digits(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (left % 3 == 0 && i > 0 && digits[i - 1] != '-') grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "…";
    const int length = utf8_sequence_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
      at += 1;
    } else {
      out += text.substr(at, static_cast<size_t>(length));
      at += static_cast<size_t>(length);
    }
  }
  return out;
}

}  // namespace tinyvllm
