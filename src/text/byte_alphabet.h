// The printable stand-ins that byte-level vocabularies use for bytes: visible Latin-1 characters
// stand for themselves, the other 68 bytes for U+0100 and up ("Ġ" is a space, "Ċ" a newline).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinyvllm {

char32_t byte_to_character(uint8_t byte);
int character_to_byte(char32_t character);  // -1 when it stands for no byte

// " the" → "Ġthe".
std::string to_byte_alphabet(std::string_view bytes);

// "Ġthe" → " the". False, and `out` unchanged, when some character stands for no byte; that is how
// control tokens and stray text in a vocabulary show.
bool from_byte_alphabet(std::string_view text, std::string& out);

}  // namespace tinyvllm
