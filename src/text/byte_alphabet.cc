#include "text/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

constexpr bool is_visible(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr int kLastCharacter = 0x143;  // 68 bytes are moved to U+0100…U+0143

struct Tables {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kLastCharacter + 1> byte{};
};

constexpr Tables kTables = [] {
  Tables tables;
  for (int16_t& byte : tables.byte) byte = -1;
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const uint16_t character = is_visible(byte) ? static_cast<uint16_t>(byte) : next++;
    tables.character[static_cast<size_t>(byte)] = character;
    tables.byte[character] = static_cast<int16_t>(byte);
  }
  return tables;
}();

}  // namespace

char32_t byte_to_character(uint8_t byte) { return kTables.character[byte]; }

int character_to_byte(char32_t character) {
  return character <= kLastCharacter ? kTables.byte[character] : -1;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) utf8_append(out, byte_to_character(static_cast<uint8_t>(byte)));
  return out;
}

bool from_byte_alphabet(std::string_view text, std::string& out) {
  const size_t before = out.size();
  for (size_t at = 0; at < text.size();) {
    const bool known = utf8_sequence_length(text.substr(at)) != 0;
    const int byte = known ? character_to_byte(utf8_next(text, at)) : -1;
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
  }
  return true;
}

}  // namespace tinyvllm
