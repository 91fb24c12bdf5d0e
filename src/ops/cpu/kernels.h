// What each instruction set provides: one table of functions, filled by the files in isa/ that are
// compiled once per instruction set. Plain pointers only; threads, shapes, the blocks of the cache
// and everything else that needs the library stay on this side, in the file of the same name.
#pragma once

#include <stdint.h>

#include "base/dtype.h"

namespace tinyvllm::ops::cpu {

// Rows of a linear are computed 8 at a time: one row per lane for the interleaved types.
constexpr int kRowGroup = 8;

// Activations as int8, x ≈ scale · q, in the forms that weights want them. The largest number of a
// row is 0 in its block and lies behind the row's last one as it is: some 10 times as large as its
// neighbours, as it is in most models, it would leave them 4 bits.
struct Outlier {
  uint32_t column;
  float value;
};
// 32 columns: `sum` of the q serves weights with an offset, scaled_sum (= scale · sum) those with a
// minimum.
struct Q8Block {
  float scale;
  float scaled_sum;
  int32_t sum;
  int32_t unused;
  int8_t q[32];
};
// 32 columns in 16 bits, for weights that need all 8 bits themselves. 32 · 128 · kWideTop < 2^24,
// so that a block's sum is exact as a float too: the finer rounding costs nothing.
constexpr int kWideTop = 4095;
struct Q8WideBlock {
  float scale;
  int16_t q[32];
};
// 256 columns with one scale; sums of each 16 and each 32.
struct Q8KBlock {
  float scale;
  int16_t sums16[16];
  int16_t sums32[8];
  int8_t q[256];
};
using QuantizeKernel = void (*)(const float* x, int64_t n, void* blocks);

// One group of 8 rows times `tokens` rows of activations.
struct LinearTile {
  const void* weights;  // interleaved blocks, or the first row where rows are used as they lie
  int64_t row_bytes;    // of rows used as they lie
  int rows;             // 1..8 valid ones, likewise; interleaved groups are padded to 8
  int64_t k;
  const void* x;     // [tokens] rows of the form that the weights want
  int64_t x_stride;  // bytes from one to the next
  int64_t tokens;
  float* y;          // [tokens, 8]
  int64_t y_stride;  // floats
};
using LinearKernel = void (*)(const LinearTile& tile);

// The cache stores K of 8 tokens interleaved, so that a lane is a token, and V row by row. A tile
// is kKvTile tokens at a multiple of kKvTile: the online softmax rescales once per tile, at
// positions that depend on nothing but the token's own.
constexpr int kKvLanes = 8;
constexpr int kKvTile = 64;

// What rows of queries have seen so far: maximum score, sum of weights, weighted sum of V.
struct AttentionState {
  float* max;  // [rows], -infinity at first
  float* sum;  // [rows]
  float* acc;  // [rows, v_dim]
};

struct AttentionTile {
  int k_dim;
  int v_dim;                          // rounded up to 8
  const void* k[kKvTile / kKvLanes];  // each [k_dim, 8 tokens]; null where no row sees any
  const void* v[kKvTile / kKvLanes];  // each [8 tokens, v_dim]; I8: either with 8 scales behind it
  int rows;
  const float* q;    // [rows, k_dim], scaled
  const int* begin;  // [rows]: positions of the tile that a row sees are [begin, end)
  const int* end;
  float soft_cap;
  AttentionState state;
};

using GateKernel = void (*)(const float* g, const float* u, int64_t n, float* y);
using RotateKernel = void (*)(const float* cosines, const float* sines, int64_t pairs, float* head);

struct Kernels {
  void (*rms_norm)(const float* x, const float* w, float eps, int64_t n, float* y);
  void (*layer_norm)(const float* x, const float* w, const float* b, float eps, int64_t n,
                     float* y);

  QuantizeKernel quantize_q8;
  QuantizeKernel quantize_q8_wide;
  QuantizeKernel quantize_q8_k;
  LinearKernel (*linear)(DType weights);  // null: no kernel for that type
  GateKernel silu_gate;                   // y = silu(g) · u
  GateKernel gelu_gate;

  // Cosines and sines of position · frequency, times magnitude.
  void (*rotation)(const float* frequencies, int64_t pairs, float position, float magnitude,
                   float* cosines, float* sines);
  RotateKernel rotate_adjacent;
  RotateKernel rotate_halves;
  void (*to_f16)(const float* x, int64_t n, uint16_t* y);
  float (*to_i8)(const float* x, int64_t n, int8_t* y);  // returns the scale

  void (*attend_i8)(const AttentionTile& tile);
  void (*attend_f16)(const AttentionTile& tile);
  void (*attend_f32)(const AttentionTile& tile);
  // Adds what one row saw to what another state has of it.
  void (*merge_attention)(const AttentionState& from, int row, int v_dim, const AttentionState& to,
                          int to_row);

  float (*largest)(const float* x, int64_t n);
  float (*exponentials)(const float* x, int64_t n, float shift, float* y);  // returns the sum
  int64_t (*find_above)(const float* x, int64_t n, float threshold);        // first index; n: none

  // The machine's limits (limits.h).
  int64_t (*read_forward)(const void* data, int64_t bytes);
  int64_t (*read_prefetched)(const void* data, int64_t bytes);
  float (*multiply_add)(int64_t rounds, float seed);       // 192 operations a round
  int64_t (*multiply_bytes)(int64_t rounds, int8_t seed);  // 512
};

}  // namespace tinyvllm::ops::cpu
