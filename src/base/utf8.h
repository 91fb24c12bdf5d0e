// UTF-8 as the Unicode standard defines it: no surrogates, no overlong forms, nothing above
// U+10FFFF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinyvllm {

constexpr char32_t kReplacementCharacter = 0xFFFD;

// Bytes (1..4) of the well-formed sequence that `text` begins with; 0 if it begins with none.
int utf8_sequence_length(std::string_view text);

// Length of the maximal ill-formed prefix that one U+FFFD replaces (as Rust and WHATWG decoders
// do); `text` must not begin with a well-formed sequence and must not be empty.
int utf8_invalid_length(std::string_view text);

// Bytes at the end of `text` that are the beginning of a sequence still to be completed.
size_t utf8_incomplete_suffix(std::string_view text);

bool is_utf8(std::string_view text);

// The text with every ill-formed part replaced by U+FFFD. Well-formed text comes back as it was.
std::string utf8_replace_invalid(std::string_view text);

void utf8_append(std::string& out, char32_t code_point);

// Decodes the well-formed sequence at text[at] and moves `at` past it.
char32_t utf8_next(std::string_view text, size_t& at);

}  // namespace tinyvllm
