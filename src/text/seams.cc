#include "text/seams.h"

#include "base/utf8.h"
#include "text/hash.h"

namespace tinyvllm {
namespace {

// A character's bytes as one number.
uint32_t pack(std::string_view character) {
  uint32_t value = 0;
  for (const char byte : character) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

size_t byte_pair(char left, char right) {
  return static_cast<size_t>(static_cast<unsigned char>(left)) << 8 |
         static_cast<unsigned char>(right);
}

size_t character_pair(uint32_t left, uint32_t right, size_t bits) {
  return hash_number(uint64_t{left} << 32 | right) >> (64 - bits);
}

}  // namespace

void Seams::add_token(std::string_view bytes) {
  // The token as characters, and as fragments where it begins or ends inside one.
  std::string_view left;
  bool left_is_whole = false;
  for (size_t at = 0; at < bytes.size();) {
    const int length = utf8_sequence_length(bytes.substr(at));
    const bool is_whole = length > 0;
    size_t end = at + (is_whole ? static_cast<size_t>(length) : 1);
    while (!is_whole && end < bytes.size() &&
           (static_cast<unsigned char>(bytes[end]) & 0xC0) == 0x80) {
      end += 1;
    }
    const std::string_view right = bytes.substr(at, end - at);
    if (left_is_whole && is_whole) {
      pairs_[character_pair(pack(left), pack(right), kPairBits)] = true;
    } else if (at > 0) {
      fragments_[byte_pair(left.back(), right.front())] = true;
    }
    left = right;
    left_is_whole = is_whole;
    at = end;
  }
}

size_t Seams::next_cut(std::string_view text, size_t begin) const {
  uint32_t left = 0;
  for (size_t at = begin; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const uint32_t right = length == 1 ? lead : pack(text.substr(at, length));
    const bool is_joined = at == begin || pairs_[character_pair(left, right, kPairBits)] ||
                           fragments_[byte_pair(text[at - 1], text[at])];
    if (!is_joined) return at;
    left = right;
    at += length;
  }
  return text.size();
}

}  // namespace tinyvllm
