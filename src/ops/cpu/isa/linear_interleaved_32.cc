// Weights in blocks of 32 columns: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
#include "ops/cpu/isa/linear_interleaved.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

// Formats in blocks of 32. kFlush: how many words' products fit a 16-bit lane: 2 · 127 · the
// largest quant each. kOffset is what is taken off every quant.
struct Q4_0 {
  using Block = PackedQ4_0;
  static constexpr int kFlush = 8;  // 8 · 2 · 127 · 15 = 30480
  static constexpr int kOffset = 8;
  static TINYVLLM_INLINE U8x32 word(const Block& w, int g) { return nibbles(w.nibbles, g); }
};
struct Q4_1 {
  using Block = PackedQ4_1;
  static constexpr int kFlush = 8;
  static constexpr int kOffset = 0;
  static TINYVLLM_INLINE U8x32 word(const Block& w, int g) { return nibbles(w.nibbles, g); }
};
struct Q5_0 {
  using Block = PackedQ5_0;
  static constexpr int kFlush = 4;  // 4 · 2 · 127 · 31 = 31496
  static constexpr int kOffset = 16;
  static TINYVLLM_INLINE U8x32 word(const Block& w, int g) {
    return five_bits(w.nibbles, w.fifth, g);
  }
};
struct Q5_1 {
  using Block = PackedQ5_1;
  static constexpr int kFlush = 4;
  static constexpr int kOffset = 0;
  static TINYVLLM_INLINE U8x32 word(const Block& w, int g) {
    return five_bits(w.nibbles, w.fifth, g);
  }
};

template <class Format, int T>
struct Blocks32 {
  using Block = typename Format::Block;
  using X = Q8Block;
  static constexpr int kColumns = 32;

  static TINYVLLM_INLINE void add(const Block& w, const X* const* x, F32x8* acc) {
    const int8_t* q[T];
    for (int t = 0; t < T; ++t) q[t] = x[t]->q;
    const I16x16 ones = (I16x16)splat_i32(0x00010001);
    I32x8 dots[T] = {};
    TINYVLLM_UNROLL(2)
    for (int g = 0; g < 8; g += Format::kFlush) {
      dot_words<Format, T>(w, g, q, ones, dots, Format::word);
    }
    const F32x8 scale = load_f16(w.scale);
    for (int t = 0; t < T; ++t) {
      if constexpr (Format::kOffset != 0) {
        dots[t] -= splat_i32(Format::kOffset * x[t]->sum);
      } else {
        acc[t] = fma(load_f16(w.min), splat(x[t]->scaled_sum), acc[t]);
      }
      acc[t] = fma(to_float(dots[t]), scale * splat(x[t]->scale), acc[t]);
    }
  }

  static TINYVLLM_INLINE F32x8 column(const Block& w, unsigned c) {
    const F32x8 quants = to_float(column_of(Format::word(w, c / 4), c % 4) - Format::kOffset);
    if constexpr (Format::kOffset != 0)
      return quants * load_f16(w.scale);
    else
      return fma(quants, load_f16(w.scale), load_f16(w.min));
  }
};

// Q8_0 in 16 bits: 4 columns of 4 rows to a vector, 2 partial sums of each row.
template <int T>
struct BlocksQ8 {
  using Block = PackedQ8_0;
  using X = Q8WideBlock;
  static constexpr int kColumns = 32;

  static TINYVLLM_INLINE void add(const Block& w, const X* const* x, F32x8* acc) {
    I32x8 low[T] = {};
    I32x8 high[T] = {};
    TINYVLLM_UNROLL(8)
    for (int g = 0; g < 8; ++g) {
      const I16x16 rows_low = widen(&w.q[g][0]);
      const I16x16 rows_high = widen(&w.q[g][4]);
      for (int t = 0; t < T; ++t) {
        const I16x16 columns = splat4(x[t]->q + 4 * g);
        low[t] += dot2(rows_low, columns);
        pin(low[t]);
        high[t] += dot2(rows_high, columns);
        pin(high[t]);
      }
    }
    const F32x8 scale = load_f16(w.scale);
    for (int t = 0; t < T; ++t) {
      acc[t] = fma(to_float(add_pairs(low[t], high[t])), scale * splat(x[t]->scale), acc[t]);
    }
  }
};

template <class Format>
struct In32 {
  template <int T>
  using Blocks = Blocks32<Format, T>;
};

}  // namespace

LinearKernel linear_interleaved_32(DType weights) {
  switch (weights) {
    case DType::kQ4_0:
      return multiply<In32<Q4_0>::Blocks>;
    case DType::kQ4_1:
      return multiply<In32<Q4_1>::Blocks>;
    case DType::kQ5_0:
      return multiply<In32<Q5_0>::Blocks>;
    case DType::kQ5_1:
      return multiply<In32<Q5_1>::Blocks>;
    case DType::kQ8_0:
      return multiply<BlocksQ8>;
    default:
      return nullptr;
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
