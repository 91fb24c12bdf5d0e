// Random numbers without state: a keyed function of a counter (Philox 4×32, ten rounds, Salmon et
// al. 2011). The same (seed, answer, position) gives the same numbers in any batch, on any device.
#pragma once

#include <array>
#include <cstdint>

#include "sample/share.h"

namespace tinyvllm {

using PhiloxCounter = std::array<uint32_t, 4>;

inline PhiloxCounter philox(PhiloxCounter counter, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

struct RandomKey {
  uint64_t seed = 0;
  uint32_t answer = 0;    // which of the request's answers, when it asks for several
  uint32_t position = 0;  // of the token being chosen
};

// What a number is drawn for: one token needs more than one.
enum class Draw : uint32_t { kToken = 0, kXtc = 1 };

inline uint64_t random_bits(const RandomKey& key, Draw draw) {
  const PhiloxCounter out =
      philox({key.position, static_cast<uint32_t>(draw), key.answer, 0}, key.seed);
  return static_cast<uint64_t>(out[1]) << 32 | out[0];
}

// Uniform in [0, total).
inline uint64_t random_below(const RandomKey& key, Draw draw, uint64_t total) {
  return part_of(random_bits(key, draw), total);
}

// Uniform in [0, 1).
inline double random_unit(const RandomKey& key, Draw draw) {
  return static_cast<double>(random_bits(key, draw) >> 11) * 0x1p-53;
}

// For a request that brings no seed of its own.
uint64_t random_seed();

}  // namespace tinyvllm
