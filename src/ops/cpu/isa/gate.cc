// Gated activations: silu(g) = g / (1 + e^-g); gelu in its tanh form is g / (1 + e^-2u) with
// u = √(2/π) · (g + 0.044715 g³), because (1 + tanh u) / 2 is the logistic function of 2u.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

TINYVLLM_INLINE F32x8 silu(F32x8 g) { return g / (splat(1) + exp(-g)); }

TINYVLLM_INLINE F32x8 gelu(F32x8 g) {
  constexpr float kMinusTwoRoot = -2 * 0.7978845608f;
  const F32x8 cubic = fma(g * g * g, splat(0.044715f), g);
  return g / (splat(1) + exp(cubic * splat(kMinusTwoRoot)));
}

template <class F>
TINYVLLM_INLINE void gate(const float* g, const float* u, int64_t n, float* y, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(g + i)) * load(u + i));
  if (i < n) store_n(y + i, f(load_n(g + i, n - i)) * load_n(u + i, n - i), n - i);
}

}  // namespace

void silu_gate(const float* g, const float* u, int64_t n, float* y) {
  gate(g, u, n, y, [](F32x8 v) { return silu(v); });
}
void gelu_gate(const float* g, const float* u, int64_t n, float* y) {
  gate(g, u, n, y, [](F32x8 v) { return gelu(v); });
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
