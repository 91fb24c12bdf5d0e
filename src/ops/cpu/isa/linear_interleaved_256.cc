// Weights in blocks of 256 columns: Q2_K to Q6_K.
#include "ops/cpu/isa/linear_interleaved.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

// Bytes a[i], b[i] side by side in lane i, as 16-bit numbers.
TINYVLLM_INLINE I16x16 pair_up(const PerRow& a, const PerRow& b) {
  return blend_odd(spread_unsigned(a), spread_unsigned(b));
}
TINYVLLM_INLINE I16x16 pair_up_signed(const PerRow& a, const PerRow& b) {
  return blend_odd(spread_signed(a), spread_signed(b));
}

// Formats in blocks of 256: kSub columns share a scale of a few bits.
struct Q4_K {
  using Block = PackedQ4_K;
  static constexpr int kSub = 32;
  static constexpr int kFlush = 8;
  static constexpr int kOffset = 0;
  static TINYVLLM_INLINE I16x16 scale(const Block& w, int s) {
    return spread_unsigned(w.scales[s]);
  }
  static TINYVLLM_INLINE I16x16 mins(const Block& w, int pair) {
    return widen_unsigned(w.mins[pair]);
  }
  static TINYVLLM_INLINE U8x32 word(const Block& w, int s, int g) {
    return nibbles(w.nibbles[s], g);
  }
};
struct Q5_K {
  using Block = PackedQ5_K;
  static constexpr int kSub = 32;
  static constexpr int kFlush = 4;
  static constexpr int kOffset = 0;
  static TINYVLLM_INLINE I16x16 scale(const Block& w, int s) {
    return spread_unsigned(w.scales[s]);
  }
  static TINYVLLM_INLINE I16x16 mins(const Block& w, int pair) {
    return widen_unsigned(w.mins[pair]);
  }
  static TINYVLLM_INLINE U8x32 word(const Block& w, int s, int g) {
    return five_bits(w.nibbles[s], w.fifth[s], g);
  }
};
struct Q6_K {
  using Block = PackedQ6_K;
  static constexpr int kSub = 16;
  static constexpr int kFlush = 2;  // 2 · 2 · 127 · 63 = 32004
  static constexpr int kOffset = 32;
  static TINYVLLM_INLINE I16x16 scale(const Block& w, int s) { return spread_signed(w.scales[s]); }
  static TINYVLLM_INLINE U8x32 word(const Block& w, int s, int g) {
    return bits(w.nibbles[s][g % 2], g / 2 * 4, 15) | bits_at(w.top[s], 2 * g, 3, 4);
  }
};
struct Q3_K {
  using Block = PackedQ3_K;
  static constexpr int kSub = 16;
  static constexpr int kFlush = 4;  // 4 · 2 · 127 · 7 = 7112
  static constexpr int kOffset = 4;
  static TINYVLLM_INLINE I16x16 scale(const Block& w, int s) { return spread_signed(w.scales[s]); }
  static TINYVLLM_INLINE U8x32 word(const Block& w, int s, int g) {
    return bits(w.pairs[s], 2 * g, 3) | bits_at(w.third[s / 2], s % 2 * 4 + g, 1, 2);
  }
};
struct Q2_K {
  using Block = PackedQ2_K;
  static constexpr int kSub = 16;
  static constexpr int kFlush = 4;
  static constexpr int kOffset = 0;
  static TINYVLLM_INLINE I16x16 scale(const Block& w, int s) {
    return spread_unsigned(w.scales[s]) & 15;
  }
  static TINYVLLM_INLINE I16x16 mins(const Block& w, int pair) {
    return pair_up(w.scales[2 * pair], w.scales[2 * pair + 1]) >> 4 & 15;
  }
  static TINYVLLM_INLINE U8x32 word(const Block& w, int s, int g) {
    return bits(w.pairs[s], 2 * g, 3);
  }
};

template <class Format, int T>
struct Blocks256 {
  using Block = typename Format::Block;
  using X = Q8KBlock;
  static constexpr int kColumns = 256;
  static constexpr int kSubs = 256 / Format::kSub;

  // Σ over sub-blocks of factor · Σ activations: what offsets and minima multiply.
  static TINYVLLM_INLINE void add_sums(const Block& w, const X* const* x, I32x8* totals) {
    for (int pair = 0; pair < kSubs / 2; ++pair) {
      I16x16 factors;
      if constexpr (Format::kOffset != 0) {
        factors = pair_up_signed(w.scales[2 * pair], w.scales[2 * pair + 1]);
      } else {
        factors = Format::mins(w, pair);
      }
      for (int t = 0; t < T; ++t) {
        const int16_t* sums = Format::kSub == 32 ? x[t]->sums32 : x[t]->sums16;
        totals[t] += dot2(factors, splat2(sums + 2 * pair));
      }
    }
  }

  static TINYVLLM_INLINE void add(const Block& w, const X* const* x, F32x8* acc) {
    I32x8 dots[T] = {};
    for (int s = 0; s < kSubs; ++s) {
      const int8_t* q[T];
      for (int t = 0; t < T; ++t) q[t] = x[t]->q + s * Format::kSub;
      const I16x16 factor = Format::scale(w, s);
      TINYVLLM_UNROLL(2)
      for (int g = 0; g < Format::kSub / 4; g += Format::kFlush) {
        dot_words<Format, T>(w, g, q, factor, dots,
                             [s](const Block& block, int i) { return Format::word(block, s, i); });
      }
    }
    I32x8 sums[T] = {};
    add_sums(w, x, sums);
    const F32x8 scale = load_f16(w.scale);
    for (int t = 0; t < T; ++t) {
      if constexpr (Format::kOffset != 0) {
        dots[t] -= Format::kOffset * sums[t];
      } else {
        const F32x8 min = load_f16(w.min) * splat(-x[t]->scale);
        acc[t] = fma(to_float(sums[t]), min, acc[t]);
      }
      acc[t] = fma(to_float(dots[t]), scale * splat(x[t]->scale), acc[t]);
    }
  }

  static TINYVLLM_INLINE F32x8 column(const Block& w, unsigned c) {
    const unsigned s = c / Format::kSub;
    const unsigned i = c % Format::kSub;
    const I32x8 quants = column_of(Format::word(w, s, i / 4), i % 4) - Format::kOffset;
    const I32x8 factor = ((I32x8)Format::scale(w, s) << 16) >> 16;
    const F32x8 scaled = to_float(quants * factor) * load_f16(w.scale);
    if constexpr (Format::kOffset != 0) {
      return scaled;
    } else {
      const I32x8 min = ((I32x8)Format::mins(w, s / 2) >> (s % 2 * 16)) & 0xFFFF;
      return scaled - to_float(min) * load_f16(w.min);
    }
  }
};

template <class Format>
struct In256 {
  template <int T>
  using Blocks = Blocks256<Format, T>;
};

}  // namespace

LinearKernel linear_interleaved_256(DType weights) {
  switch (weights) {
    case DType::kQ2_K:
      return multiply<In256<Q2_K>::Blocks>;
    case DType::kQ3_K:
      return multiply<In256<Q3_K>::Blocks>;
    case DType::kQ4_K:
      return multiply<In256<Q4_K>::Blocks>;
    case DType::kQ5_K:
      return multiply<In256<Q5_K>::Blocks>;
    case DType::kQ6_K:
      return multiply<In256<Q6_K>::Blocks>;
    default:
      return nullptr;
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
