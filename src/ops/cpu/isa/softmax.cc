// Pieces of softmax and top-k over a run of floats.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

float largest(const float* x, int64_t n) {
  F32x8 top = splat(-__builtin_huge_valf());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) top = max(top, load(x + i));
  float best = max_of(top);
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// y = e^(x - shift); returns the sum: 8 lanes ascending, then the tree.
float exponentials(const float* x, int64_t n, float shift, float* y) {
  F32x8 total{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F32x8 e = exp(load(x + i) - splat(shift));
    store(y + i, e);
    total += e;
  }
  if (i < n) {
    float tail[kLanes] = {};
    store_n(tail, exp(load_n(x + i, n - i) - splat(shift)), n - i);
    total += load(tail);
    store_n(y + i, load(tail), n - i);
  }
  return sum(total);
}

// Index of the first element above the threshold, n if there is none.
int64_t find_above(const float* x, int64_t n, float threshold) {
  const F32x8 limit = splat(threshold);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const F32x8 top =
        max(max(load(x + i), load(x + i + 8)), max(load(x + i + 16), load(x + i + 24)));
    if (any(top > limit)) break;
  }
  for (; i < n; ++i) {
    if (x[i] > threshold) return i;
  }
  return n;
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
