// Parts of a total weight: what a share of it comes to, and where a random number falls in it.
#pragma once

#include <math.h>
#include <stdint.h>

#include "sample/portable.h"

namespace tinyvllm {

// The least weight that is at least `share` of the total, and never none.
TINYVLLM_ANYWHERE inline uint64_t share_of(double share, uint64_t total) {
  const auto least = static_cast<uint64_t>(ceil(share * static_cast<double>(total)));
  return least > 1 ? least : 1;
}

// Uniform in [0, total) for uniform bits.
TINYVLLM_ANYWHERE inline uint64_t part_of(uint64_t bits, uint64_t total) {
  using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(bits) * total >> 64);
}

}  // namespace tinyvllm
