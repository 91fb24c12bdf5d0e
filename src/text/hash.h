// Hashing for the tables on the encoding path: short keys, and a seed that is another in every
// process, so that no file can be written whose strings collide. What a table finds never hangs on
// the seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tinyvllm {

inline uint64_t mix_bits(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline constexpr uint64_t kHashKey0 = 0x9E3779B97F4A7C15u;  // odd constants with evenly spread bits
inline constexpr uint64_t kHashKey1 = 0xD6E8FEB86659FD93u;

extern const uint64_t kHashSeed;

inline uint64_t hash_number(uint64_t value) { return mix_bits(value ^ kHashSeed, kHashKey0); }

template <class Word>
uint64_t load_word(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Up to eight bytes as one number, the missing ones zero. (memcpy of a variable length is a call.)
inline uint64_t load_short(std::string_view text) {
  const char* const at = text.data();
  const size_t size = text.size();
  if (size >= 8) return load_word<uint64_t>(at);
  if (size >= 4) {
    return load_word<uint32_t>(at) | load_word<uint32_t>(at + size - 4) << (size - 4) * 8;
  }
  if (size >= 2) {
    return load_word<uint16_t>(at) | load_word<uint16_t>(at + size - 2) << (size - 2) * 8;
  }
  return size == 1 ? load_word<uint8_t>(at) : 0;
}

inline uint64_t hash_bytes(std::string_view text) {
  uint64_t hash = kHashSeed ^ text.size() * kHashKey1;
  for (; text.size() > 8; text.remove_prefix(8)) {
    hash = mix_bits(hash ^ load_word<uint64_t>(text.data()), kHashKey0);
  }
  return mix_bits(hash ^ load_short(text), kHashKey0);
}

}  // namespace tinyvllm
