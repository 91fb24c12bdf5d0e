// What two threads saw of one row, put together: the tiles themselves are in attention_tile.h.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

void merge_attention(const AttentionState& from, int row, int v_dim, const AttentionState& to,
                     int to_row) {
  const float* acc = from.acc + static_cast<int64_t>(row) * v_dim;
  float* total = to.acc + static_cast<int64_t>(to_row) * v_dim;
  const float a = to.max[to_row];
  const float b = from.max[row];
  if (b == -__builtin_huge_valf()) return;  // saw nothing
  const float top = a > b ? a : b;
  const F32x8 keep = exp(splat(a - top));
  const F32x8 take = exp(splat(b - top));
  to.max[to_row] = top;
  to.sum[to_row] = to.sum[to_row] * keep[0] + from.sum[row] * take[0];
  for (int d = 0; d < v_dim; d += kLanes) {
    store(total + d, fma(load(acc + d), take, load(total + d) * keep));
  }
}

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
