// Weights used as they lie in the file, row by row: F32, F16, BF16 times float activations. A lane
// holds every 8th column, so each (row, token) has one vector of accumulators, ascending columns
// and one final tree: the same chain in every tile shape.
//
// One token: 8 rows at once, 8 chains hide the FMA's latency while memory sets the pace. Many: 4
// rows × 3 tokens, 12 accumulators + 4 converted weights fit the 16 registers and each conversion
// serves 3 FMAs.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

struct F32 {
  static constexpr int kBytes = 4;
  static TINYVLLM_INLINE F32x8 load8(const char* from) { return load_as<F32x8>(from); }
};
struct F16 {
  static constexpr int kBytes = 2;
  static TINYVLLM_INLINE F32x8 load8(const char* from) { return load_f16(from); }
};
struct BF16 {
  static constexpr int kBytes = 2;
  static TINYVLLM_INLINE F32x8 load8(const char* from) { return load_bf16(from); }
};

constexpr int kLine = 32;  // columns: a cache line of 16-bit weights

template <class Format>
TINYVLLM_INLINE F32x8 load_tail(const char* from, int64_t n) {
  char padded[kLanes * Format::kBytes] = {};
  memcpy(padded, from, static_cast<size_t>(n) * Format::kBytes);
  return Format::load8(padded);
}

template <class Format, int R, int T>
TINYVLLM_INLINE void multiply_tile(const LinearTile& tile, int row, int64_t token) {
  const char* w[R];
  const float* x[T];
  for (int r = 0; r < R; ++r) {
    // Rows that the last group lacks repeat its last one; what they yield is not used.
    const int valid = row + r < tile.rows ? row + r : tile.rows - 1;
    w[r] = static_cast<const char*>(tile.weights) + valid * tile.row_bytes;
  }
  for (int t = 0; t < T; ++t) {
    x[t] = reinterpret_cast<const float*>(static_cast<const char*>(tile.x) +
                                          (token + t) * tile.x_stride);
  }
  F32x8 acc[R][T] = {};
  int64_t k = 0;
  // One token: the pace is memory's, and rows end before the core's own prefetchers are up to
  // speed, so each line asks for the same one of the next group.
  for (; T == 1 && k + kLine <= tile.k; k += kLine) {
    TINYVLLM_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const char* line = w[r] + k * Format::kBytes;
      for (int b = 0; b < kLine * Format::kBytes; b += 64) {
        __builtin_prefetch(line + R * tile.row_bytes + b, 0, 2);
      }
      TINYVLLM_UNROLL(4)
      for (int i = 0; i < kLine; i += kLanes) {
        acc[r][0] = fma(Format::load8(line + i * Format::kBytes), load(x[0] + k + i), acc[r][0]);
      }
    }
  }
  for (; k + kLanes <= tile.k; k += kLanes) {
    F32x8 activations[T];
    for (int t = 0; t < T; ++t) activations[t] = load(x[t] + k);
    for (int r = 0; r < R; ++r) {
      const F32x8 weights = Format::load8(w[r] + k * Format::kBytes);
      for (int t = 0; t < T; ++t) acc[r][t] = fma(weights, activations[t], acc[r][t]);
    }
  }
  if (const int64_t n = tile.k - k; n > 0) {
    for (int r = 0; r < R; ++r) {
      const F32x8 weights = load_tail<Format>(w[r] + k * Format::kBytes, n);
      for (int t = 0; t < T; ++t) acc[r][t] = fma(weights, load_n(x[t] + k, n), acc[r][t]);
    }
  }
  for (int t = 0; t < T; ++t) {
    for (int r = 0; r < R; ++r) tile.y[(token + t) * tile.y_stride + row + r] = sum(acc[r][t]);
  }
}

template <class Format>
void multiply(const LinearTile& tile) {
  int64_t token = 0;
  for (; token + 3 <= tile.tokens; token += 3) {
    multiply_tile<Format, 4, 3>(tile, 0, token);
    multiply_tile<Format, 4, 3>(tile, 4, token);
  }
  for (; token < tile.tokens; ++token) multiply_tile<Format, 8, 1>(tile, 0, token);
}

}  // namespace

LinearKernel linear_rows(DType weights) {
  switch (weights) {
    case DType::kF32:
      return multiply<F32>;
    case DType::kF16:
      return multiply<F16>;
    case DType::kBF16:
      return multiply<BF16>;
    default:
      return nullptr;
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
