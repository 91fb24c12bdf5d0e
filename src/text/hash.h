// Hashing for the tables on the encoding path: short keys, no adversary worth a stronger function
// (a hostile vocabulary can only slow its own lookups, and probing is bounded by the table).
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

inline uint64_t hash_number(uint64_t value) { return mix_bits(value ^ kHashKey1, kHashKey0); }

inline uint64_t hash_bytes(std::string_view text) {
  uint64_t hash = text.size() * kHashKey1;
  const char* at = text.data();
  size_t left = text.size();
  uint64_t word = 0;
  for (; left >= 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    hash = mix_bits(hash ^ word, kHashKey0);
  }
  word = 0;
  std::memcpy(&word, at, left);
  return mix_bits(hash ^ word, kHashKey0);
}

}  // namespace tinyvllm
