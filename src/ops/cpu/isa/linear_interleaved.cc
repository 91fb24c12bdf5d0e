// Quantized weights times int8 activations, one row per lane (interleaved.h). The tile is 8 rows ×
// up to 4 tokens: 4 float and 4 integer accumulators, two vectors of weights and three of scales
// stay within 16 registers, and each unpacked weight vector serves 4 tokens.
//
// Every (row, token) has one chain of float additions over ascending blocks, the same in a tile of
// one token and in one of four; sums inside a block are integers and exact.
#include "ops/cpu/interleaved.h"
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

constexpr int kMaxTokens = 4;

// Σ over 32 columns of nibble · x: at most 8 · 2 · 15 · 127 = 30480 in a 16-bit lane.
template <int T, class Block>
TINYVLLM_INLINE void dot_nibbles(const Block& w, const Q8Block* const* x, int64_t b, I32x8* dots) {
  const I16x16 ones = (I16x16)splat_i32(0x00010001);
  I16x16 total[T] = {};
  for (int v = 0; v < 4; ++v) {
    const U8x32 both = load_as<U8x32>(w.q[v]);
    const U8x32 low = both & splat_u8(15);
    const U8x32 high = shift_right4(both);
    for (int t = 0; t < T; ++t) {
      total[t] += dot2(low, splat4(x[t][b].q + 4 * v));
      total[t] += dot2(high, splat4(x[t][b].q + 16 + 4 * v));
    }
  }
  for (int t = 0; t < T; ++t) dots[t] = dot2(total[t], ones);
}

struct Q4_0 {
  using Block = PackedQ4_0;
  template <int T>
  static TINYVLLM_INLINE void accumulate(const Block& w, const Q8Block* const* x, int64_t b,
                                         F32x8* acc) {
    I32x8 dots[T];
    dot_nibbles<T>(w, x, b, dots);
    const F32x8 scale = load_f16(w.scale);
    for (int t = 0; t < T; ++t) {
      const F32x8 exact = to_float(dots[t] - splat_i32(8 * x[t][b].sum));
      acc[t] = fma(exact, scale * splat(x[t][b].scale), acc[t]);
    }
  }
};

struct Q4_1 {
  using Block = PackedQ4_1;
  template <int T>
  static TINYVLLM_INLINE void accumulate(const Block& w, const Q8Block* const* x, int64_t b,
                                         F32x8* acc) {
    I32x8 dots[T];
    dot_nibbles<T>(w, x, b, dots);
    const F32x8 scale = load_f16(w.scale);
    const F32x8 min = load_f16(w.min);
    for (int t = 0; t < T; ++t) {
      acc[t] = fma(to_float(dots[t]), scale * splat(x[t][b].scale), acc[t]);
      acc[t] = fma(min, splat(x[t][b].scaled_sum), acc[t]);
    }
  }
};

// Signed by signed: |w| · (x with w's sign). One product of two columns is at most 2 · 128 · 127 =
// 32512, so it is widened at once.
struct Q8_0 {
  using Block = PackedQ8_0;
  template <int T>
  static TINYVLLM_INLINE void accumulate(const Block& w, const Q8Block* const* x, int64_t b,
                                         F32x8* acc) {
    const I16x16 ones = (I16x16)splat_i32(0x00010001);
    I32x8 dots[T] = {};
    for (int v = 0; v < 8; ++v) {
      const I8x32 weights = load_as<I8x32>(w.q[v]);
      const U8x32 size = magnitude(weights);
      for (int t = 0; t < T; ++t) {
        dots[t] += dot2(dot2(size, with_sign(splat4(x[t][b].q + 4 * v), weights)), ones);
      }
    }
    const F32x8 scale = load_f16(w.scale);
    for (int t = 0; t < T; ++t) {
      acc[t] = fma(to_float(dots[t]), scale * splat(x[t][b].scale), acc[t]);
    }
  }
};

template <class Format, int T>
TINYVLLM_INLINE void multiply_tokens(const LinearTile& tile, int64_t token) {
  const auto* w = static_cast<const typename Format::Block*>(tile.weights);
  const Q8Block* x[T];
  F32x8 acc[T] = {};
  for (int t = 0; t < T; ++t) {
    x[t] = reinterpret_cast<const Q8Block*>(static_cast<const char*>(tile.x) +
                                            (token + t) * tile.x_stride);
  }
  const int64_t blocks = tile.k / 32;
  for (int64_t b = 0; b < blocks; ++b) Format::template accumulate<T>(w[b], x, b, acc);
  for (int t = 0; t < T; ++t) store(tile.y + (token + t) * tile.y_stride, acc[t]);
}

template <class Format>
void multiply(const LinearTile& tile) {
  int64_t token = 0;
  for (; token + kMaxTokens <= tile.tokens; token += kMaxTokens) {
    multiply_tokens<Format, kMaxTokens>(tile, token);
  }
  switch (tile.tokens - token) {
    case 3:
      return multiply_tokens<Format, 3>(tile, token);
    case 2:
      return multiply_tokens<Format, 2>(tile, token);
    case 1:
      return multiply_tokens<Format, 1>(tile, token);
  }
}

}  // namespace

LinearKernel linear_interleaved(DType weights) {
  switch (weights) {
    case DType::kQ4_0:
      return multiply<Q4_0>;
    case DType::kQ4_1:
      return multiply<Q4_1>;
    case DType::kQ8_0:
      return multiply<Q8_0>;
    default:
      return nullptr;
  }
}

void quantize_q8(const float* x, int64_t n, Q8Block* q) {
  for (int64_t i = 0; i < n; i += 32, ++q, x += 32) {
    F32x8 v[4];
    F32x8 largest{};
    for (int j = 0; j < 4; ++j) {
      v[j] = load(x + 8 * j);
      largest = max(largest, absolute(v[j]));
    }
    const float top = max_of(largest);
    const F32x8 inverse = splat(top > 0 ? 127.0f / top : 0);
    I32x8 total{};
    for (int j = 0; j < 4; ++j) {
      const I32x8 rounded = to_int(v[j] * inverse);
      total += rounded;
      for (int lane = 0; lane < kLanes; ++lane)
        q->q[8 * j + lane] = static_cast<int8_t>(rounded[lane]);
    }
    int32_t sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += total[lane];
    q->scale = top / 127.0f;
    q->sum = sum;
    q->scaled_sum = q->scale * static_cast<float>(sum);
    q->unused = 0;
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
