// One tile of the cache against some rows of queries: scores, online softmax, weighted sum of V.
// Scores come 8 tokens to a vector (a lane is a token), one chain over ascending head dimensions
// per (row, token); V is added up in ascending tokens, one chain per (row, dimension). How many
// rows and vectors share a pass is a matter of registers and changes no chain. What a row does not
// see is neither compared nor added: recycled blocks may hold anything.
//
// Included once per type of the cache: compilers take half a minute for all of them.
#pragma once

#include "ops/cpu/isa/functions.h"
#include "ops/cpu/isa/simd.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

constexpr int kGroups = kKvTile / kKvLanes;
constexpr int kMaxRows = 4;

// A cache is read 8 elements at a time. With scales, those of a group's 8 tokens follow its
// elements: `k_scaled` finishes 8 tokens' scores, `v_scaled` prepares the
// weight of one token's V.
struct CacheI8 {
  using Element = int8_t;
  static TINYVLLM_INLINE F32x8 load8(const Element* from) {
    typedef int8_t I8x8 __attribute__((vector_size(8)));
    I8x8 narrow;
    memcpy(&narrow, from, sizeof narrow);
    return __builtin_convertvector(narrow, F32x8);
  }
  static TINYVLLM_INLINE F32x8 k_scaled(F32x8 score, const Element* k, int k_dim) {
    return score * load(reinterpret_cast<const float*>(k + k_dim * kKvLanes));
  }
  static TINYVLLM_INLINE float v_scaled(float weight, const Element* v, int v_dim, int lane) {
    return weight * reinterpret_cast<const float*>(v + v_dim * kKvLanes)[lane];
  }
};
struct Unscaled {
  static TINYVLLM_INLINE F32x8 k_scaled(F32x8 score, const void*, int) { return score; }
  static TINYVLLM_INLINE float v_scaled(float weight, const void*, int, int) { return weight; }
};
struct CacheF16 : Unscaled {
  using Element = uint16_t;
  static TINYVLLM_INLINE F32x8 load8(const Element* from) { return load_f16(from); }
};
struct CacheF32 : Unscaled {
  using Element = float;
  static TINYVLLM_INLINE F32x8 load8(const Element* from) { return load(from); }
};

// cap · tanh(s / cap), from tanh x = 1 - 2 / (e^2x + 1)
TINYVLLM_INLINE F32x8 capped(F32x8 s, float cap) {
  const F32x8 e = exp(s * splat(2 / cap));
  return splat(cap) - splat(2 * cap) / (e + splat(1));
}

// Lanes of group g that lie in [begin, end).
TINYVLLM_INLINE I32x8 visible(int group, int begin, int end) {
  const I32x8 position = I32x8{0, 1, 2, 3, 4, 5, 6, 7} + group * kKvLanes;
  return (position >= begin) & (position < end);
}

// R rows against G groups of 8 tokens: R · G accumulators, 8 or more to hide the FMA's latency, and
// with the G vectors of K and a query element within 16 registers.
template <class Cache, int R, int G>
TINYVLLM_INLINE void score_groups(const AttentionTile& tile, int row, int group,
                                  F32x8 (*scores)[kGroups]) {
  const typename Cache::Element* k[G];
  for (int g = 0; g < G; ++g) {
    k[g] = static_cast<const typename Cache::Element*>(tile.k[group + g]);
  }
  const float* q[R];
  for (int r = 0; r < R; ++r) q[r] = tile.q + static_cast<int64_t>(row + r) * tile.k_dim;
  F32x8 total[R][G] = {};
  for (int d = 0; d < tile.k_dim; ++d) {
    F32x8 keys[G];
    for (int g = 0; g < G; ++g) keys[g] = Cache::load8(k[g] + d * kKvLanes);
    for (int r = 0; r < R; ++r) {
      const F32x8 query = splat(q[r][d]);
      for (int g = 0; g < G; ++g) total[r][g] = fma(keys[g], query, total[r][g]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int g = 0; g < G; ++g) {
      const F32x8 s = Cache::k_scaled(total[r][g], k[g], tile.k_dim);
      scores[r][group + g] = tile.soft_cap > 0 ? capped(s, tile.soft_cap) : s;
    }
  }
}

template <class Cache, int R>
TINYVLLM_INLINE void score(const AttentionTile& tile, int row, int first, int last,
                           F32x8 (*scores)[kGroups]) {
  constexpr int kTogether = R == 4 ? 2 : R == 1 ? 8 : 4;
  int g = first;
  for (; g + kTogether <= last + 1; g += kTogether) {
    score_groups<Cache, R, kTogether>(tile, row, g, scores);
  }
  for (; g <= last; ++g) score_groups<Cache, R, 1>(tile, row, g, scores);
}

// Scores become weights e^(score - max); the row's state is brought to the new maximum. Returns the
// factor by which what was summed up so far shrinks.
TINYVLLM_INLINE float weigh(const AttentionTile& tile, int row, const F32x8* scores,
                            float* weights) {
  const int begin = tile.begin[row];
  const int end = tile.end[row];
  const int first = begin / kKvLanes;
  const int last = (end - 1) / kKvLanes;
  const F32x8 lowest = splat(-__builtin_huge_valf());
  F32x8 top = lowest;
  for (int g = first; g <= last; ++g) {
    top = max(top, select(visible(g, begin, end), scores[g], lowest));
  }
  const float old_max = tile.state.max[row];
  const float tile_max = max_of(top);
  const float new_max = tile_max > old_max ? tile_max : old_max;
  F32x8 total{};
  for (int g = first; g <= last; ++g) {
    const F32x8 w = select(visible(g, begin, end), exp(scores[g] - splat(new_max)), F32x8{});
    total += w;
    store(weights + g * kKvLanes, w);
  }
  const float decay = exp(splat(old_max - new_max))[0];  // 0 at first, from -infinity
  tile.state.max[row] = new_max;
  tile.state.sum[row] = tile.state.sum[row] * decay + sum(total);
  return decay;
}

// acc = decay · acc + Σ over tokens [begin, end) of weight · V, for R rows and D vectors of V.
template <class Cache, int R, int D>
TINYVLLM_INLINE void add_values(const AttentionTile& tile, int row, int d, int begin, int end,
                                const float (*weights)[kKvTile], const float* decay) {
  F32x8 total[R][D];
  for (int r = 0; r < R; ++r) {
    const float* acc = tile.state.acc + static_cast<int64_t>(row + r) * tile.v_dim + d;
    for (int i = 0; i < D; ++i) total[r][i] = load(acc + i * kLanes) * splat(decay[r]);
  }
  for (int t = begin; t < end; ++t) {
    const auto* group = static_cast<const typename Cache::Element*>(tile.v[t / kKvLanes]);
    const auto* v = group + static_cast<int64_t>(t % kKvLanes) * tile.v_dim + d;
    F32x8 values[D];
    for (int i = 0; i < D; ++i) values[i] = Cache::load8(v + i * kLanes);
    for (int r = 0; r < R; ++r) {
      const F32x8 weight = splat(Cache::v_scaled(weights[r][t], group, tile.v_dim, t % kKvLanes));
      for (int i = 0; i < D; ++i) total[r][i] = fma(weight, values[i], total[r][i]);
    }
  }
  for (int r = 0; r < R; ++r) {
    float* acc = tile.state.acc + static_cast<int64_t>(row + r) * tile.v_dim + d;
    for (int i = 0; i < D; ++i) store(acc + i * kLanes, total[r][i]);
  }
}

template <class Cache, int R>
TINYVLLM_INLINE void add_values(const AttentionTile& tile, int row, int begin, int end,
                                const float (*weights)[kKvTile], const float* decay) {
  constexpr int kTogether = R == 4 ? 2 : R == 1 ? 8 : 4;
  int d = 0;
  for (; d + kTogether * kLanes <= tile.v_dim; d += kTogether * kLanes) {
    add_values<Cache, R, kTogether>(tile, row, d, begin, end, weights, decay);
  }
  for (; d < tile.v_dim; d += kLanes) {
    add_values<Cache, R, 1>(tile, row, d, begin, end, weights, decay);
  }
}

template <class Cache, int R>
TINYVLLM_INLINE void attend_rows(const AttentionTile& tile, int row) {
  const int* begin = tile.begin + row;
  const int* end = tile.end + row;
  int first = kKvTile;
  int last = 0;
  int shared_begin = 0;  // what all R rows see
  int shared_end = kKvTile;
  for (int r = 0; r < R; ++r) {
    if (begin[r] < end[r]) {
      first = begin[r] < first ? begin[r] : first;
      last = end[r] > last ? end[r] : last;
    }
    shared_begin = begin[r] > shared_begin ? begin[r] : shared_begin;
    shared_end = end[r] < shared_end ? end[r] : shared_end;
  }
  if (first >= last) return;
  F32x8 scores[R][kGroups];
  score<Cache, R>(tile, row, first / kKvLanes, (last - 1) / kKvLanes, scores);

  alignas(32) float weights[R][kKvTile];
  float decay[R];
  const float one[R == 1 ? 1 : kMaxRows] = {1};
  const bool shared = R > 1 && shared_begin < shared_end;
  for (int r = 0; r < R; ++r) {
    decay[r] = 1;
    if (begin[r] >= end[r]) continue;
    decay[r] = weigh(tile, row + r, scores[r], weights[r]);
    // Tokens that this row sees and another does not, before the shared ones: or all of them.
    const int stop = shared ? shared_begin : end[r];
    if (begin[r] < stop) {
      add_values<Cache, 1>(tile, row + r, begin[r], stop, weights + r, decay + r);
      decay[r] = 1;
    }
  }
  if (!shared) return;
  add_values<Cache, R>(tile, row, shared_begin, shared_end, weights, decay);
  for (int r = 0; r < R; ++r) {
    if (shared_end < end[r]) {
      add_values<Cache, 1>(tile, row + r, shared_end, end[r], weights + r, one);
    }
  }
}

template <class Cache>
TINYVLLM_INLINE void attend(const AttentionTile& tile) {
  int row = 0;
  for (; row + kMaxRows <= tile.rows; row += kMaxRows) attend_rows<Cache, kMaxRows>(tile, row);
  switch (tile.rows - row) {
    case 3:
      return attend_rows<Cache, 3>(tile, row);
    case 2:
      return attend_rows<Cache, 2>(tile, row);
    case 1:
      return attend_rows<Cache, 1>(tile, row);
  }
}

}  // namespace

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
