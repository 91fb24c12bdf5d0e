// What the machine can do at best with this instruction set: the tightest loops we know, to divide
// achieved speeds by.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

// Makes the compiler believe that a value changed here, so that it computes with it every time.
template <class Vector>
TINYVLLM_INLINE void touch(Vector& v) {
#if defined(__AVX2__)
  asm volatile("" : "+x"(v));
#else
  asm volatile("" : "+m"(v));
#endif
}

}  // namespace

// One stream, 4 vectors at a time; `bytes` a multiple of 128.
int64_t read_forward(const void* data, int64_t bytes) {
  const auto* p = static_cast<const char*>(data);
  I32x8 total[4] = {};
  for (int64_t i = 0; i < bytes; i += 128) {
    for (int j = 0; j < 4; ++j) total[j] += load_as<I32x8>(p + i + 32 * j);
  }
  const I32x8 sum = total[0] + total[1] + total[2] + total[3];
  return int64_t{sum[0]} + sum[7];
}

// The same with a prefetch ahead, which helps where the hardware stops at a page's end.
int64_t read_prefetched(const void* data, int64_t bytes) {
  constexpr int64_t kAhead = 4096;
  const auto* p = static_cast<const char*>(data);
  I32x8 total[4] = {};
  for (int64_t i = 0; i < bytes; i += 128) {
    __builtin_prefetch(p + i + kAhead);
    __builtin_prefetch(p + i + kAhead + 64);
    for (int j = 0; j < 4; ++j) total[j] += load_as<I32x8>(p + i + 32 * j);
  }
  const I32x8 sum = total[0] + total[1] + total[2] + total[3];
  return int64_t{sum[0]} + sum[7];
}

// 12 independent chains of FMAs: 2 · 8 · 12 operations a round.
float multiply_add(int64_t rounds, float seed) {
  F32x8 acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = splat(seed + static_cast<float>(i));
  const F32x8 a = splat(1 - seed);
  const F32x8 b = splat(seed);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < 12; ++i) acc[i] = fma(acc[i], a, b);
  }
  F32x8 total{};
  for (int i = 0; i < 12; ++i) total += acc[i];
  return sum(total);
}

// 8 chains of byte products added up in 16 bits: 2 · 32 · 8 operations a round.
int64_t multiply_bytes(int64_t rounds, int8_t seed) {
  I16x16 acc[8] = {};
  U8x32 weights = splat_u8(static_cast<uint8_t>(seed));
  const I8x32 x = (I8x32)splat_u8(1);
  for (int64_t r = 0; r < rounds; ++r) {
    touch(weights);
    for (int i = 0; i < 8; ++i) acc[i] += dot2(weights, x);
    for (int i = 0; i < 8; ++i) touch(acc[i]);
  }
  I16x16 total{};
  for (int i = 0; i < 8; ++i) total += acc[i];
  return total[0];
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
