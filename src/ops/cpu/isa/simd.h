// The vectors that kernels are written in: 8 floats, 32 bytes, whatever the instruction set. Types
// are the compiler's own vectors, so + - * / need no wrapper; what has no operator (FMA, the int8
// products, half floats) is a function here, once with AVX2 instructions and once as plain loops.
//
// Only files in an isa folder may include this: everything is always inlined or internal, so that a
// copy compiled for a newer CPU can never be the one that an older CPU runs.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "base/half.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

#define TINYVLLM_INLINE __attribute__((always_inline)) inline

// Before a loop: unrolls it, so that arrays indexed by its variable live in registers.
#if defined(__clang__)
#define TINYVLLM_UNROLL(n) _Pragma("unroll")
#else
#define TINYVLLM_PRAGMA(text) _Pragma(#text)
#define TINYVLLM_UNROLL(n) TINYVLLM_PRAGMA(GCC unroll n)
#endif

constexpr int kLanes = 8;
using F32x8 = float __attribute__((vector_size(32)));
using I32x8 = int32_t __attribute__((vector_size(32)));
using I16x16 = int16_t __attribute__((vector_size(32)));
using U16x16 = uint16_t __attribute__((vector_size(32)));
using I8x32 = int8_t __attribute__((vector_size(32)));
using U8x32 = uint8_t __attribute__((vector_size(32)));

template <class Vector, class T>
TINYVLLM_INLINE Vector load_as(const T* from) {
  Vector v;
  memcpy(&v, from, sizeof v);
  return v;
}
TINYVLLM_INLINE F32x8 load(const float* from) { return load_as<F32x8>(from); }
TINYVLLM_INLINE void store(float* to, F32x8 v) { memcpy(to, &v, sizeof v); }
TINYVLLM_INLINE F32x8 splat(float x) { return F32x8{x, x, x, x, x, x, x, x}; }
TINYVLLM_INLINE I32x8 splat_i32(int32_t x) { return I32x8{x, x, x, x, x, x, x, x}; }
TINYVLLM_INLINE U8x32 splat_u8(uint8_t x) {
  return (U8x32)splat_i32(static_cast<int32_t>(0x01010101u * x));
}

// The first n of 8 elements; the rest reads as zero and is not written.
TINYVLLM_INLINE F32x8 load_n(const float* from, int64_t n) {
  if (n == kLanes) return load(from);
  F32x8 v{};
  memcpy(&v, from, static_cast<size_t>(n) * sizeof(float));
  return v;
}
TINYVLLM_INLINE void store_n(float* to, F32x8 v, int64_t n) {
  if (n == kLanes) return store(to, v);
  memcpy(to, &v, static_cast<size_t>(n) * sizeof(float));
}

// Lanes where `mask` is all ones from a, where it is zero from b.
TINYVLLM_INLINE F32x8 select(I32x8 mask, F32x8 a, F32x8 b) {
  return (F32x8)((mask & (I32x8)a) | (~mask & (I32x8)b));
}
// Even elements of a, odd elements of b.
TINYVLLM_INLINE I16x16 blend_odd(I16x16 a, I16x16 b) {
  return (I16x16)(((I32x8)a & 0xFFFF) | ((I32x8)b & ~0xFFFF));
}
TINYVLLM_INLINE F32x8 to_float(I32x8 v) { return __builtin_convertvector(v, F32x8); }

// Sum and maximum of the lanes, as a tree: ((0+4)+(2+6)) + ((1+5)+(3+7)).
TINYVLLM_INLINE float sum(F32x8 v) {
  const F32x8 a = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  const F32x8 b = a + __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5);
  return b[0] + b[1];
}

#if defined(__AVX2__)

// Computes a sum here and now, in the order written: compilers like to turn a chain of integer
// additions into a tree, whose many leaves then do not fit the registers.
template <class Vector>
TINYVLLM_INLINE void pin(Vector& v) {
  asm("" : "+x"(v));
}

TINYVLLM_INLINE F32x8 fma(F32x8 a, F32x8 b, F32x8 c) { return _mm256_fmadd_ps(a, b, c); }
TINYVLLM_INLINE F32x8 max(F32x8 a, F32x8 b) { return _mm256_max_ps(a, b); }
TINYVLLM_INLINE F32x8 min(F32x8 a, F32x8 b) { return _mm256_min_ps(a, b); }
TINYVLLM_INLINE F32x8 square_root(F32x8 v) { return _mm256_sqrt_ps(v); }
TINYVLLM_INLINE I32x8 to_int(F32x8 v) { return (I32x8)_mm256_cvtps_epi32(v); }  // nearest even

TINYVLLM_INLINE bool any(I32x8 mask) { return _mm256_movemask_ps((__m256)mask) != 0; }

TINYVLLM_INLINE F32x8 load_f16(const void* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
TINYVLLM_INLINE void store_f16(void* to, F32x8 v) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
TINYVLLM_INLINE F32x8 load_bf16(const void* from) {
  const __m128i halves = _mm_loadu_si128(static_cast<const __m128i*>(from));
  return (F32x8)_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
}

// Pairs a[2i]·b[2i] + a[2i+1]·b[2i+1]. Callers stay clear of the saturation at 32767.
TINYVLLM_INLINE I16x16 dot2(U8x32 a, I8x32 b) {
  return (I16x16)_mm256_maddubs_epi16((__m256i)a, (__m256i)b);
}
TINYVLLM_INLINE I32x8 dot2(I16x16 a, I16x16 b) {
  return (I32x8)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
// Sums of neighbours: a0+a1, a2+a3, b0+b1, b2+b3, a4+a5, a6+a7, b4+b5, b6+b7.
TINYVLLM_INLINE I32x8 add_pairs(I32x8 a, I32x8 b) {
  return (I32x8)_mm256_hadd_epi32((__m256i)a, (__m256i)b);
}
// 16 signed bytes as 16-bit numbers.
TINYVLLM_INLINE I16x16 widen(const void* bytes) {
  return (I16x16)_mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
}
TINYVLLM_INLINE I16x16 widen_unsigned(const void* bytes) {
  return (I16x16)_mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
}
// Byte i of 8, in both 16-bit halves of lane i.
TINYVLLM_INLINE I16x16 spread_unsigned(const uint8_t* bytes) {
  const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  return (I16x16)_mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}
TINYVLLM_INLINE I16x16 spread_signed(const uint8_t* bytes) {
  const __m256i v = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  return (I16x16)_mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xAA);
}

#else

template <class Vector>
TINYVLLM_INLINE void pin(Vector&) {}

TINYVLLM_INLINE F32x8 fma(F32x8 a, F32x8 b, F32x8 c) { return a * b + c; }
TINYVLLM_INLINE F32x8 max(F32x8 a, F32x8 b) { return select(a > b, a, b); }
TINYVLLM_INLINE F32x8 min(F32x8 a, F32x8 b) { return select(a < b, a, b); }
TINYVLLM_INLINE F32x8 square_root(F32x8 v) {
  for (int i = 0; i < kLanes; ++i) v[i] = sqrtf(v[i]);
  return v;
}
// Adding 1.5·2^23 leaves the integer, rounded to nearest even, in the low bits; |v| < 2^22.
TINYVLLM_INLINE I32x8 to_int(F32x8 v) {
  const F32x8 magic = splat(12582912.0f);
  return (I32x8)(v + magic) - (I32x8)magic;
}

TINYVLLM_INLINE bool any(I32x8 mask) {
  int32_t all = 0;
  for (int i = 0; i < kLanes; ++i) all |= mask[i];
  return all != 0;
}

TINYVLLM_INLINE F32x8 load_f16(const void* from) {
  uint16_t halves[kLanes];
  memcpy(halves, from, sizeof halves);
  F32x8 v;
  for (int i = 0; i < kLanes; ++i) v[i] = f16_to_f32(halves[i]);
  return v;
}
TINYVLLM_INLINE void store_f16(void* to, F32x8 v) {
  uint16_t halves[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = f32_to_f16(v[i]);
  memcpy(to, halves, sizeof halves);
}
TINYVLLM_INLINE F32x8 load_bf16(const void* from) {
  uint16_t halves[kLanes];
  memcpy(halves, from, sizeof halves);
  F32x8 v;
  for (int i = 0; i < kLanes; ++i) v[i] = bf16_to_f32(halves[i]);
  return v;
}

TINYVLLM_INLINE I16x16 dot2(U8x32 a, I8x32 b) {
  I16x16 v;
  for (int i = 0; i < 16; ++i) {
    v[i] = static_cast<int16_t>(a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
  }
  return v;
}
TINYVLLM_INLINE I32x8 dot2(I16x16 a, I16x16 b) {
  I32x8 v;
  for (int i = 0; i < 8; ++i) v[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
  return v;
}
TINYVLLM_INLINE I32x8 add_pairs(I32x8 a, I32x8 b) {
  return I32x8{a[0] + a[1], a[2] + a[3], b[0] + b[1], b[2] + b[3],
               a[4] + a[5], a[6] + a[7], b[4] + b[5], b[6] + b[7]};
}
TINYVLLM_INLINE I16x16 widen(const void* bytes) {
  using I8x16 = int8_t __attribute__((vector_size(16)));
  return __builtin_convertvector(load_as<I8x16>(bytes), I16x16);
}
TINYVLLM_INLINE I16x16 widen_unsigned(const void* bytes) {
  using U8x16 = uint8_t __attribute__((vector_size(16)));
  return (I16x16) __builtin_convertvector(load_as<U8x16>(bytes), U16x16);
}
TINYVLLM_INLINE I16x16 spread_unsigned(const uint8_t* bytes) {
  I16x16 v;
  for (int i = 0; i < 16; ++i) v[i] = bytes[i / 2];
  return v;
}
TINYVLLM_INLINE I16x16 spread_signed(const uint8_t* bytes) {
  I16x16 v;
  for (int i = 0; i < 16; ++i) v[i] = static_cast<int8_t>(bytes[i / 2]);
  return v;
}

#endif

// Four bytes, two or four 16-bit numbers, repeated over a vector.
TINYVLLM_INLINE I8x32 splat4(const int8_t* from) {
  int32_t word;
  memcpy(&word, from, sizeof word);
  return (I8x32)splat_i32(word);
}
TINYVLLM_INLINE I16x16 splat2(const int16_t* from) {
  int32_t word;
  memcpy(&word, from, sizeof word);
  return (I16x16)splat_i32(word);
}
TINYVLLM_INLINE I16x16 splat4(const int16_t* from) {
  using I64x4 = int64_t __attribute__((vector_size(32)));
  int64_t word;
  memcpy(&word, from, sizeof word);
  return (I16x16)I64x4{word, word, word, word};
}

TINYVLLM_INLINE float max_of(F32x8 v) {
  const F32x8 a = max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
  const F32x8 b = max(a, __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5));
  return b[0] > b[1] ? b[0] : b[1];
}
TINYVLLM_INLINE F32x8 absolute(F32x8 v) { return (F32x8)((I32x8)v & splat_i32(0x7FFFFFFF)); }

// e^x to 2 ulp: 2^n · p(r) with x = n·ln2 + r, |r| ≤ ln2/2. Zero where the result would be
// subnormal, e^88.3 above that, and NaN stays NaN (max and min return their second argument then).
TINYVLLM_INLINE F32x8 exp(F32x8 exponent) {
  const F32x8 x = min(splat(88.3f), max(splat(-87.3f), exponent));
  const I32x8 n = to_int(x * splat(1.44269504f));
  const F32x8 nf = to_float(n);
  F32x8 r = fma(nf, splat(-0.693145752f), x);  // ln2 in two parts: n · the first is exact
  r = fma(nf, splat(-1.42860677e-6f), r);
  F32x8 p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  const F32x8 power = p * (F32x8)((n + 127) << 23);
  return (F32x8)((I32x8)power & ~(exponent < splat(-87.3f)));
}

}  // namespace
}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
