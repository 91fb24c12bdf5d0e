// The layout that quantized weights are packed into, 8 rows at a time. The quants of a block are
// cut into words of 4 columns, and the 8 rows' words of the same columns lie side by side, so that
// one 32-byte vector holds a row per 4-byte lane: multiplied by 4 activations repeated in every
// lane it yields 8 rows' partial dot products with no horizontal sum, for one token or for many
// alike. What a file keeps in fewer than 8 bits keeps its width here: vectors are cut into bit
// planes (low nibbles, pairs, single bits), so that packed weights are as small as the file's.
#pragma once

#include <stdint.h>

#include "ops/cpu/kernels.h"

namespace tinyvllm::ops::cpu {

using Word = uint8_t[kRowGroup][4];     // 4 columns of 8 rows: one vector
using PerRow = uint8_t[kRowGroup];      // a byte of each row
using Half = uint16_t[kRowGroup];       // an F16 of each row
using RowPair = uint8_t[kRowGroup][2];  // two bytes of each row

// Blocks of 32 columns: words g = 0…7 hold columns 4g…4g+3. Word g's low nibbles are in the low
// half of vector g (g < 4) or the high half of vector g - 4, its fifth bits in bit g of `fifth`.
struct PackedQ4_0 {
  Half scale;
  Word nibbles[4];
};
struct PackedQ4_1 {
  Half scale;
  Half min;
  Word nibbles[4];
};
struct PackedQ5_0 {
  Half scale;
  Word nibbles[4];
  Word fifth;
};
struct PackedQ5_1 {
  Half scale;
  Half min;
  Word nibbles[4];
  Word fifth;
};
// Multiplied as 16-bit numbers, 4 rows to a vector, and added up in pairs of lanes: rows lie in
// the order that makes the sums come out as 0…7.
struct PackedQ8_0 {
  Half scale;
  Word q[8];
};
constexpr int kQ8Slot[kRowGroup] = {0, 1, 4, 5, 2, 3, 6, 7};  // where a row lies

// Blocks of 256 columns in sub-blocks of 32 (Q4_K, Q5_K) or 16, each with a small scale.
struct PackedQ4_K {
  Half scale;
  Half min;
  PerRow scales[8];
  RowPair mins[4];
  Word nibbles[8][4];
};
struct PackedQ5_K {
  Half scale;
  Half min;
  PerRow scales[8];
  RowPair mins[4];
  Word nibbles[8][4];
  Word fifth[8];
};
struct PackedQ6_K {
  Half scale;
  PerRow scales[16];  // signed
  Word nibbles[16][2];
  Word top[16];  // bits 2g, 2g+1: the upper two of word g
};
struct PackedQ3_K {
  Half scale;
  PerRow scales[16];  // signed
  Word pairs[16];     // bits 2g, 2g+1: the lower two of word g
  Word third[8];      // bit g: of word g of an even sub-block; bit 4 + g: of the odd one after it
};
struct PackedQ2_K {
  Half scale;
  Half min;
  PerRow scales[16];  // low nibble: scale; high nibble: minimum
  Word pairs[16];
};

}  // namespace tinyvllm::ops::cpu
