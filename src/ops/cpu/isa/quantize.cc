// Activations to integers, once per op: a block's largest magnitude becomes 127, or kWideTop where
// 16 bits are there anyway. Deterministic and row by row, so a token's quants do not depend on its
// neighbours.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

TINYVLLM_INLINE float largest(const float* x, int n) {
  F32x8 top{};
  for (int i = 0; i < n; i += kLanes) top = max(top, absolute(load(x + i)));
  return max_of(top);
}
TINYVLLM_INLINE F32x8 inverse_scale(float top, float code = 127) {
  return splat(top > 0 ? code / top : 0);
}

TINYVLLM_INLINE void store_narrow(int8_t* to, I32x8 v) {
  using I8x8 = int8_t __attribute__((vector_size(8)));
  const I8x8 narrow = __builtin_convertvector(v, I8x8);
  memcpy(to, &narrow, sizeof narrow);
}
TINYVLLM_INLINE void store_narrow(int16_t* to, I32x8 v) {
  using I16x8 = int16_t __attribute__((vector_size(16)));
  const I16x8 narrow = __builtin_convertvector(v, I16x8);
  memcpy(to, &narrow, sizeof narrow);
}

// 32 numbers rounded; returns their sum.
template <class Element>
TINYVLLM_INLINE int32_t round32(const float* x, F32x8 inverse, Element* q) {
  I32x8 total{};
  for (int i = 0; i < 32; i += kLanes) {
    const I32x8 rounded = to_int(load(x + i) * inverse);
    total += rounded;
    store_narrow(q + i, rounded);
  }
  int32_t sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += total[lane];
  return sum;
}

TINYVLLM_INLINE void quantize_block(const float* x, float top, Q8Block* block) {
  block->sum = round32(x, inverse_scale(top), block->q);
  block->scale = top / 127.0f;
  block->scaled_sum = block->scale * static_cast<float>(block->sum);
  block->unused = 0;
}

TINYVLLM_INLINE void quantize_block(const float* x, float top, Q8KBlock* block) {
  const F32x8 inverse = inverse_scale(top);
  block->scale = top / 127.0f;
  for (int s = 0; s < 8; ++s) {
    const int8_t* q = block->q + 32 * s;
    const int32_t sum = round32(x + 32 * s, inverse, block->q + 32 * s);
    int32_t half = 0;
    for (int j = 0; j < 16; ++j) half += q[j];
    block->sums32[s] = static_cast<int16_t>(sum);
    block->sums16[2 * s] = static_cast<int16_t>(half);
    block->sums16[2 * s + 1] = static_cast<int16_t>(sum - half);
  }
}

// All blocks, then the one with the largest number once more, without it.
template <class Block>
TINYVLLM_INLINE void quantize_row(const float* x, int64_t n, Block* blocks) {
  constexpr int kColumns = sizeof(Block::q);
  int64_t where = 0;
  float most = 0;
  for (int64_t i = 0; i < n / kColumns; ++i) {
    const float top = largest(x + i * kColumns, kColumns);
    quantize_block(x + i * kColumns, top, blocks + i);
    if (top > most) {
      most = top;
      where = i;
    }
  }
  float rest[kColumns];
  memcpy(rest, x + where * kColumns, sizeof rest);
  int column = 0;
  while (column < kColumns - 1 && fabsf(rest[column]) != most) ++column;
  const Outlier outlier{static_cast<uint32_t>(where * kColumns + column), rest[column]};
  rest[column] = 0;
  quantize_block(rest, largest(rest, kColumns), blocks + where);
  memcpy(static_cast<void*>(blocks + n / kColumns), &outlier, sizeof outlier);
}

}  // namespace

void quantize_q8(const float* x, int64_t n, void* to) {
  quantize_row(x, n, static_cast<Q8Block*>(to));
}

void quantize_q8_k(const float* x, int64_t n, void* to) {
  quantize_row(x, n, static_cast<Q8KBlock*>(to));
}

void quantize_q8_wide(const float* x, int64_t n, void* to) {
  auto* block = static_cast<Q8WideBlock*>(to);
  for (int64_t i = 0; i < n; i += 32, ++block) {
    const float top = largest(x + i, 32);
    round32(x + i, inverse_scale(top, kWideTop), block->q);
    block->scale = top / kWideTop;
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
