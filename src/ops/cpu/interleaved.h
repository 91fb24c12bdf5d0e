// The layout that quantized weights are packed into: blocks of 32 columns of 8 rows at a time. The
// quants of a block are cut into words of 4 columns, and the 8 rows' words of the same columns lie
// side by side, so that one 32-byte vector holds a row per 4-byte lane: multiplied by 4 activations
// repeated in every lane it yields 8 rows' partial dot products with no horizontal sum, for one
// token or for many alike. Nibbles keep the files' pairing: columns j and j + 16 share a byte.
#pragma once

#include <stdint.h>

#include "ops/cpu/kernels.h"

namespace tinyvllm::ops::cpu {

struct PackedQ4_0 {
  uint16_t scale[kRowGroup];
  uint8_t q[4][kRowGroup][4];  // word v: columns 4v…4v+3 low, 16+4v…16+4v+3 high
};
struct PackedQ4_1 {
  uint16_t scale[kRowGroup];
  uint16_t min[kRowGroup];
  uint8_t q[4][kRowGroup][4];
};
struct PackedQ8_0 {
  uint16_t scale[kRowGroup];
  int8_t q[8][kRowGroup][4];
};

}  // namespace tinyvllm::ops::cpu
