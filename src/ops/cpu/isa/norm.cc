// Rows are normalised in one fixed order of additions: 8 lanes, ascending, then the tree of sum().
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

// Σ f(x[i]) over a row; the tail's missing lanes are not added.
template <class F>
TINYVLLM_INLINE float sum_over(const float* x, int64_t n, F f) {
  F32x8 total{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) total += f(load(x + i));
  if (i < n) {
    float tail[kLanes] = {};
    store_n(tail, f(load_n(x + i, n - i)), n - i);
    total += load(tail);
  }
  return sum(total);
}

template <class F>
TINYVLLM_INLINE void for_each_vector(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, n - i);
}

}  // namespace

void rms_norm(const float* x, const float* w, float eps, int64_t n, float* y) {
  const float squares = sum_over(x, n, [](F32x8 v) { return v * v; });
  const F32x8 scale = splat(1.0f / sqrtf(squares / static_cast<float>(n) + eps));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i) * scale * load(w + i));
  if (i < n) store_n(y + i, load_n(x + i, n - i) * scale * load_n(w + i, n - i), n - i);
}

void layer_norm(const float* x, const float* w, const float* b, float eps, int64_t n, float* y) {
  const float mean = sum_over(x, n, [](F32x8 v) { return v; }) / static_cast<float>(n);
  const F32x8 m = splat(mean);
  const float squares = sum_over(x, n, [m](F32x8 v) { return (v - m) * (v - m); });
  const F32x8 scale = splat(1.0f / sqrtf(squares / static_cast<float>(n) + eps));
  for_each_vector(n, [&](int64_t i, int64_t count) {
    const F32x8 bias = b == nullptr ? F32x8{} : load_n(b + i, count);
    store_n(y + i, fma((load_n(x + i, count) - m) * scale, load_n(w + i, count), bias), count);
  });
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
