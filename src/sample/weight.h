// Probabilities as the sampler counts them: integers. A token `octaves` ≤ 0 under the likeliest one
// weighs 2^(30 + octaves), rounded, and from 30 octaves down nothing. Sums of integers are exact in
// any order, so that every implementation, however it splits and vectorises a row, finds the same
// total, the same nucleus and the same token. What is given up is below 10^-9 of the likeliest.
//
// Always inlined, without library calls: kernels compiled for several CPUs and
// for cards share this file.
#pragma once

#include <stdint.h>

#include "sample/portable.h"

namespace tinyvllm {

constexpr float kFloorOctaves = -30;
constexpr uint32_t kTopWeight = 1u << 30;
constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;

// 2^f on [-1/2, 1/2] by a polynomial that is 1 at 0, with a relative error of 2·10^-7 in float.
constexpr float kExp2C1 = 0.6931470036506653f, kExp2C2 = 0.24022242426872253f,
                kExp2C3 = 0.05550733581185341f, kExp2C4 = 0.009671512991189957f,
                kExp2C5 = 0.001326472731307149f;
constexpr float kRoundToInt =
    12582912.0f;  // 1.5 · 2^23: adding it leaves an integer in the low bits

// How far below the likeliest token a token is; `scale` is log2(e) / temperature.
[[gnu::always_inline]] TINYVLLM_ANYWHERE inline float octaves_of(float logit, float top,
                                                                 float scale) {
  return (logit - top) * scale;
}

[[gnu::always_inline]] TINYVLLM_ANYWHERE inline uint32_t weight_of(float octaves) {
  if (!(octaves >= kFloorOctaves)) return 0;
  const float shifted = octaves + kRoundToInt;
  const float f = octaves - (shifted - kRoundToInt);
  const float f2 = f * f;  // Estrin's scheme: short chains, for the kernels' sake
  const float p =
      ((kExp2C5 * f + kExp2C4) * f2 + (kExp2C3 * f + kExp2C2)) * f2 + (kExp2C1 * f + 1.0f);
  const uint32_t exponent = (__builtin_bit_cast(uint32_t, shifted) + 30) << 23;
  return static_cast<uint32_t>(static_cast<int32_t>(
      __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, p) + exponent) + 0.5f));
}

}  // namespace tinyvllm
