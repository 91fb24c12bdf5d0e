// "<0xE6>": how vocabularies of characters spell the bytes that they fall back to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinyvllm {

inline std::optional<uint8_t> parse_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    const bool upper = c >= 'A' && c <= 'F';
    const bool lower = c >= 'a' && c <= 'f';
    if (!digit && !upper && !lower) return std::nullopt;
    value = value * 16 + (digit ? c - '0' : upper ? c - 'A' + 10 : c - 'a' + 10);
  }
  return static_cast<uint8_t>(value);
}

inline std::string make_byte_token(uint8_t byte) {
  static const char* const kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

}  // namespace tinyvllm
