// Quantized weights times int8 activations, one row per lane (interleaved.h). The tile is 8 rows ×
// up to 4 tokens: 4 float and 4 integer accumulators, a vector of weights, one of activations and a
// few of scales stay within 16 registers, and each unpacked weight vector serves 4 tokens.
//
// Every (row, token) has one chain of float additions over ascending blocks, the same in a tile of
// one token and in one of four; sums inside a block are integers and exact.
//
// What both sizes of blocks share; included by the file of each.
#pragma once

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

// Columns 4g…4g+3 of 32: nibbles, and nibbles with a fifth bit.
TINYVLLM_INLINE U8x32 nibbles(const Word* words, int g) {
  return bits(words[g % 4], g / 4 * 4, 15);
}
TINYVLLM_INLINE U8x32 five_bits(const Word* words, const Word& fifth, int g) {
  return nibbles(words, g) | bits_at(fifth, g, 1, 4);
}

// Column i of a word's 4.
TINYVLLM_INLINE I32x8 column_of(U8x32 word, unsigned i) {
  return ((I32x8)word >> static_cast<int>(8 * i)) & 255;
}

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

// What was kept out of the blocks: x are past their last ones. Neighbours mostly have it in the
// same column.
template <class Blocks, int T>
TINYVLLM_INLINE void add_outliers(const typename Blocks::Block* w,
                                  const typename Blocks::X* const* x, F32x8* acc) {
  F32x8 weights{};
  uint32_t column = UINT32_MAX;
  TINYVLLM_UNROLL(4)
  for (int t = 0; t < T; ++t) {
    const auto outlier = load_as<Outlier>(x[t]);
    if (outlier.column != column) {
      column = outlier.column;
      weights = Blocks::column(w[column / Blocks::kColumns], column % Blocks::kColumns);
    }
    acc[t] = fma(weights, splat(outlier.value), acc[t]);
  }
}

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
  if constexpr (requires { &Blocks::column; }) add_outliers<Blocks, T>(w, x, acc);
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

}  // namespace

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
