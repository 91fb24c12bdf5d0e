// One tile of the cache against some rows of queries: scores, online softmax, weighted sum of V.
// Scores come 8 tokens to a vector (a lane is a token), one chain over ascending head dimensions
// per (row, token). What a row does not see is neither compared nor added: recycled blocks may
// hold anything.
#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

constexpr int kGroups = kKvTile / kKvLanes;

struct CacheF16 {
  using Element = uint16_t;
  static TINYVLLM_INLINE F32x8 load8(const Element* from) { return load_f16(from); }
};
struct CacheF32 {
  using Element = float;
  static TINYVLLM_INLINE F32x8 load8(const Element* from) { return load(from); }
};

TINYVLLM_INLINE F32x8 capped(F32x8 s, float cap) {
  // cap · tanh(s / cap), from e^2x: tanh x = 1 - 2 / (e^2x + 1)
  const F32x8 e = exp(s * splat(2 / cap));
  return splat(cap) - splat(2 * cap) / (e + splat(1));
}

template <class Cache>
TINYVLLM_INLINE F32x8 scores(const AttentionTile& tile, int row, int group) {
  const auto* k = static_cast<const typename Cache::Element*>(tile.k[group]);
  const float* q = tile.q + static_cast<int64_t>(row) * tile.k_dim;
  F32x8 total{};
  for (int d = 0; d < tile.k_dim; ++d) {
    total = fma(Cache::load8(k + d * kKvLanes), splat(q[d]), total);
  }
  return tile.soft_cap > 0 ? capped(total, tile.soft_cap) : total;
}

// Lanes of group g that lie in [begin, end).
TINYVLLM_INLINE I32x8 visible(int group, int begin, int end) {
  const I32x8 position = I32x8{0, 1, 2, 3, 4, 5, 6, 7} + group * kKvLanes;
  return (position >= begin) & (position < end);
}

template <class Cache>
TINYVLLM_INLINE void attend_row(const AttentionTile& tile, int row) {
  const int begin = tile.begin[row];
  const int end = tile.end[row];
  if (begin >= end) return;
  const int first = begin / kKvLanes;
  const int last = (end - 1) / kKvLanes;
  const F32x8 lowest = splat(-__builtin_huge_valf());
  F32x8 score[kGroups];
  F32x8 top = lowest;
  for (int g = first; g <= last; ++g) {
    score[g] = select(visible(g, begin, end), scores<Cache>(tile, row, g), lowest);
    top = max(top, score[g]);
  }
  const float old_max = tile.max[row];
  const float tile_max = max_of(top);
  const float new_max = tile_max > old_max ? tile_max : old_max;
  const float decay = old_max == -__builtin_huge_valf() ? 0 : exp(splat(old_max - new_max))[0];

  alignas(32) float weights[kKvTile];
  F32x8 total{};
  for (int g = first; g <= last; ++g) {
    const F32x8 w = select(visible(g, begin, end), exp(score[g] - splat(new_max)), F32x8{});
    total += w;
    store(weights + g * kKvLanes, w);
  }
  tile.max[row] = new_max;
  tile.sum[row] = tile.sum[row] * decay + sum(total);

  float* acc = tile.acc + static_cast<int64_t>(row) * tile.v_dim;
  for (int d = 0; d < tile.v_dim; d += kLanes) {
    F32x8 a = load(acc + d) * splat(decay);
    for (int t = begin; t < end; ++t) {
      const auto* v = static_cast<const typename Cache::Element*>(tile.v[t / kKvLanes]) +
                      static_cast<int64_t>(t % kKvLanes) * tile.v_dim;
      a = fma(splat(weights[t]), Cache::load8(v + d), a);
    }
    store(acc + d, a);
  }
}

template <class Cache>
TINYVLLM_INLINE void attend(const AttentionTile& tile) {
  for (int row = 0; row < tile.rows; ++row) attend_row<Cache>(tile, row);
}

}  // namespace

void attend_f16(const AttentionTile& tile) { attend<CacheF16>(tile); }
void attend_f32(const AttentionTile& tile) { attend<CacheF32>(tile); }

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
