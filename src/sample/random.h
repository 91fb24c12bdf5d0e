// Random numbers without state: a keyed function of a counter (Philox 4×32, ten rounds, Salmon et
// al. 2011). The same (seed, sequence, position) gives the same number in any batch, on any device.
#pragma once

#include <cstdint>

namespace tinyvllm {

struct RandomKey {
  uint64_t seed = 0;
  uint32_t sequence = 0;  // which of the request's answers, when it asks for several
  uint32_t position = 0;  // of the token being chosen
};

// Uniform in [0, 1), with 24 bits. `draw` tells several numbers for one token apart.
inline float random_uniform(const RandomKey& key, uint32_t draw) {
  uint32_t counter[4] = {key.position, draw, key.sequence, 0};
  uint32_t k0 = static_cast<uint32_t>(key.seed);
  uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    for (int i = 0; i < 4; ++i) counter[i] = next[i];
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return static_cast<float>(counter[0] >> 8) * 0x1p-24f;
}

}  // namespace tinyvllm
