// Rotations of rotary position embedding. A token's angles are computed once per layer and used by
// all its heads.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

// sin and cos to about 1e-7 for any angle that a position makes: the quarter turns are taken out
// in double, the rest (|r| ≤ π/4) goes through polynomials.
TINYVLLM_INLINE void sine_cosine(F32x8 angle, F32x8* sine, F32x8* cosine) {
  using F64x8 = double __attribute__((vector_size(64)));
  const F64x8 wide = __builtin_convertvector(angle, F64x8);
  const F64x8 magic = F64x8{} + 6755399441055744.0;  // 1.5·2^52: rounds to an integer
  const F64x8 turns = wide * 0.63661977236758134 + magic;
  const F64x8 whole = turns - magic;
  const F32x8 r = __builtin_convertvector(wide - whole * 1.5707963267948966, F32x8);
  const I32x8 quarter = __builtin_convertvector(whole, I32x8) & 3;

  const F32x8 r2 = r * r;
  F32x8 s = splat(2.7557319e-6f);
  s = fma(s, r2, splat(-1.9841270e-4f));
  s = fma(s, r2, splat(8.3333333e-3f));
  s = fma(s, r2, splat(-1.6666667e-1f));
  s = fma(s * r2, r, r);
  F32x8 c = splat(2.4801587e-5f);
  c = fma(c, r2, splat(-1.3888889e-3f));
  c = fma(c, r2, splat(4.1666667e-2f));
  c = fma(c, r2, splat(-0.5f));
  c = fma(c, r2, splat(1));

  const I32x8 swap = (quarter & 1) != 0;
  const I32x8 sine_sign = (quarter & 2) << 30;
  const I32x8 cosine_sign = ((quarter + 1) & 2) << 30;
  *sine = (F32x8)((I32x8)select(swap, c, s) ^ sine_sign);
  *cosine = (F32x8)((I32x8)select(swap, s, c) ^ cosine_sign);
}

}  // namespace

void rotation(const float* frequencies, int64_t pairs, float position, float magnitude,
              float* cosines, float* sines) {
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t n = pairs - i < kLanes ? pairs - i : kLanes;
    F32x8 s;
    F32x8 c;
    sine_cosine(load_n(frequencies + i, n) * splat(position), &s, &c);
    store_n(cosines + i, c * splat(magnitude), n);
    store_n(sines + i, s * splat(magnitude), n);
  }
}

void rotate_halves(const float* cosines, const float* sines, int64_t pairs, float* head) {
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t n = pairs - i < kLanes ? pairs - i : kLanes;
    const F32x8 c = load_n(cosines + i, n);
    const F32x8 s = load_n(sines + i, n);
    const F32x8 a = load_n(head + i, n);
    const F32x8 b = load_n(head + pairs + i, n);
    store_n(head + i, a * c - b * s, n);
    store_n(head + pairs + i, a * s + b * c, n);
  }
}

void rotate_adjacent(const float* cosines, const float* sines, int64_t pairs, float* head) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cosines[i] - b * sines[i];
    head[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

void to_f16(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_f16(y + i, load(x + i));
  for (; i < n; ++i) y[i] = f32_to_f16(x[i]);
}

// The largest magnitude becomes 127.
float to_i8(const float* x, int64_t n, int8_t* y) {
  F32x8 top{};
  for (int64_t i = 0; i < n; i += kLanes) {
    top = max(top, absolute(load_n(x + i, n - i < kLanes ? n - i : kLanes)));
  }
  const float largest = max_of(top);
  const F32x8 inverse = splat(largest > 0 ? 127 / largest : 0);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const I32x8 rounded = to_int(load_n(x + i, count) * inverse);
    for (int64_t lane = 0; lane < count; ++lane) y[i + lane] = static_cast<int8_t>(rounded[lane]);
  }
  return largest / 127;
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
