// Quantized weights times int8 activations, one row per lane (interleaved.h). The tile is 8 rows ×
// up to 4 tokens: 4 float and 4 integer accumulators, a vector of weights, one of activations and a
// few of scales stay within 16 registers, and each unpacked weight vector serves 4 tokens.
//
// Every (row, token) has one chain of float additions over ascending blocks, the same in a tile of
// one token and in one of four; sums inside a block are integers and exact.
#include "ops/cpu/interleaved.h"
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

constexpr int kMaxTokens = 4;

// Bits [shift, …) of every byte, as many as `mask` has.
TINYVLLM_INLINE U8x32 bits(const Word& word, int shift, uint8_t mask) {
  const U16x16 v = load_as<U16x16>(&word);
  return (U8x32)(v >> static_cast<uint16_t>(shift)) & splat_u8(mask);
}
// The same, moved up to where bit 0 becomes bit `to`.
TINYVLLM_INLINE U8x32 bits_at(const Word& word, int shift, uint8_t mask, int to) {
  const U16x16 v = load_as<U16x16>(&word);
  const U16x16 moved =
      shift >= to ? v >> static_cast<uint16_t>(shift - to) : v << static_cast<uint16_t>(to - shift);
  return (U8x32)moved & splat_u8(static_cast<uint8_t>(mask << to));
}

// Bytes a[i], b[i] side by side in lane i, as 16-bit numbers.
TINYVLLM_INLINE I16x16 pair_up(const PerRow& a, const PerRow& b) {
  return blend_odd(spread_unsigned(a), spread_unsigned(b));
}
TINYVLLM_INLINE I16x16 pair_up_signed(const PerRow& a, const PerRow& b) {
  return blend_odd(spread_signed(a), spread_signed(b));
}

// Columns 4g…4g+3 of 32: nibbles, and nibbles with a fifth bit.
TINYVLLM_INLINE U8x32 nibbles(const Word* words, int g) {
  return bits(words[g % 4], g / 4 * 4, 15);
}
TINYVLLM_INLINE U8x32 five_bits(const Word* words, const Word& fifth, int g) {
  return nibbles(words, g) | bits_at(fifth, g, 1, 4);
}

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

// dots[t] += factor · Σ over kFlush words, the sum in 16 bits and the product in 32.
template <class Format, int T, class Block, class Quants>
TINYVLLM_INLINE void dot_words(const Block& w, int first, const int8_t* const* x, I16x16 factor,
                               I32x8* dots, Quants quants) {
  I16x16 sums[T] = {};
  TINYVLLM_UNROLL(8)
  for (int i = 0; i < Format::kFlush; ++i) {
    const int g = first + i;
    const U8x32 weights = quants(w, g);
    for (int t = 0; t < T; ++t) {
      sums[t] += dot2(weights, splat4(x[t] + 4 * g));
      pin(sums[t]);
    }
  }
  for (int t = 0; t < T; ++t) {
    dots[t] += dot2(sums[t], factor);
    pin(dots[t]);
  }
}

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
};

template <class Blocks, int T>
TINYVLLM_INLINE void multiply_tokens(const LinearTile& tile, int64_t token) {
  const auto* w = static_cast<const typename Blocks::Block*>(tile.weights);
  const typename Blocks::X* x[T];
  F32x8 acc[T] = {};
  for (int t = 0; t < T; ++t) {
    x[t] = reinterpret_cast<const typename Blocks::X*>(static_cast<const char*>(tile.x) +
                                                       (token + t) * tile.x_stride);
  }
  const int64_t blocks = tile.k / Blocks::kColumns;
  for (int64_t b = 0; b < blocks; ++b) {
    Blocks::add(w[b], x, acc);
    for (int t = 0; t < T; ++t) ++x[t];
  }
  for (int t = 0; t < T; ++t) store(tile.y + (token + t) * tile.y_stride, acc[t]);
}

template <template <int> class Blocks>
void multiply(const LinearTile& tile) {
  int64_t token = 0;
  for (; token + kMaxTokens <= tile.tokens; token += kMaxTokens) {
    multiply_tokens<Blocks<kMaxTokens>, kMaxTokens>(tile, token);
  }
  switch (tile.tokens - token) {
    case 3:
      return multiply_tokens<Blocks<3>, 3>(tile, token);
    case 2:
      return multiply_tokens<Blocks<2>, 2>(tile, token);
    case 1:
      return multiply_tokens<Blocks<1>, 1>(tile, token);
  }
}

template <class Format>
struct In32 {
  template <int T>
  using Blocks = Blocks32<Format, T>;
};
template <class Format>
struct In256 {
  template <int T>
  using Blocks = Blocks256<Format, T>;
};

}  // namespace

LinearKernel linear_interleaved(DType weights) {
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
