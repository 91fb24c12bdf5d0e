// Passes over logits, 8 at a time. Every operation rounds as weight.h's scalar one does (no FMA),
// and sums are of integers, so that all instruction sets and the reference agree to the last bit.
#include <math.h>

#include "ops/cpu/isa/simd.h"
#include "sample/cpu/kernels.h"
#include "sample/weight.h"

namespace tinyvllm::cpu_sampler::TINYVLLM_ISA {
namespace {

using namespace ops::cpu::TINYVLLM_ISA;
using U32x8 = uint32_t __attribute__((vector_size(32)));
using U64x4 = uint64_t __attribute__((vector_size(32)));

// A bit per lane whose mask is set.
TINYVLLM_INLINE uint32_t lane_bits(I32x8 mask) {
#if defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask));
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(mask[i] & 1) << i;
  return bits;
#endif
}

// For each set of lanes, its lanes in ascending order.
struct LanesOf {
  uint8_t at[256][kLanes] = {};
  constexpr LanesOf() {
    for (int bits = 0; bits < 256; ++bits) {
      int count = 0;
      for (int i = 0; i < kLanes; ++i) {
        if ((bits >> i & 1) != 0) at[bits][count++] = static_cast<uint8_t>(i);
      }
    }
  }
};
[[maybe_unused]] constexpr LanesOf kLanesOf;

// The last n < 8 of a row; what is missing is out of the question.
TINYVLLM_INLINE F32x8 load_tail(const float* from, int64_t n) {
  F32x8 v = splat(-INFINITY);
  memcpy(&v, from, static_cast<size_t>(n) * sizeof(float));
  return v;
}

TINYVLLM_INLINE F32x8 octaves_of(F32x8 logits, const Octaves& o) {
  return (logits - splat(o.top)) * splat(o.scale);
}

TINYVLLM_INLINE U32x8 weights_of(F32x8 logits, const Octaves& o) {
  const F32x8 octaves = octaves_of(logits, o);
  const F32x8 shifted = octaves + splat(kRoundToInt);
  const F32x8 f = octaves - (shifted - splat(kRoundToInt));
  const F32x8 f2 = f * f;
  const F32x8 p =
      ((splat(kExp2C5) * f + splat(kExp2C4)) * f2 + (splat(kExp2C3) * f + splat(kExp2C2))) * f2 +
      (splat(kExp2C1) * f + splat(1.0f));
  const U32x8 exponent = ((U32x8)shifted + 30) << 23;
  const F32x8 scaled = (F32x8)((U32x8)p + exponent) + splat(0.5f);
  // Lanes under the floor hold anything at all; only the mask makes them nothing.
  return (U32x8)(__builtin_convertvector(scaled, I32x8) & (octaves >= splat(o.floor)));
}

struct WeightSum {
  U64x4 even{}, odd{};

  TINYVLLM_INLINE void add(U32x8 w) {
    even += (U64x4)w & 0xFFFFFFFFu;
    odd += (U64x4)w >> 32;
  }
  TINYVLLM_INLINE uint64_t value() const {
    const U64x4 both = even + odd;
    return both[0] + both[1] + both[2] + both[3];
  }
};

bool block_maxima(const float* logits, int64_t n, float* maxima) {
  I32x8 numbers = splat_i32(-1);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const float* x = logits + begin;
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    F32x8 most[4];
    for (F32x8& m : most) m = splat(-INFINITY);
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int k = 0; k < 4; ++k) {
        const F32x8 v = load(x + i + k * kLanes);
        most[k] = max(v, most[k]);
        numbers &= v == v;
      }
    }
    for (; i < count; i += kLanes) {
      const F32x8 v = i + kLanes <= count ? load(x + i) : load_tail(x + i, count - i);
      most[0] = max(v, most[0]);
      numbers &= v == v;
    }
    *maxima++ = max_of(max(max(most[0], most[1]), max(most[2], most[3])));
  }
  return lane_bits(numbers) == 0xFF;
}

uint64_t mass(const float* logits, int64_t n, const Octaves& octaves) {
  WeightSum total;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {  // two weights fit 32 bits
    total.add(weights_of(load(logits + i), octaves) +
              weights_of(load(logits + i + kLanes), octaves));
  }
  if (i + kLanes <= n) {
    total.add(weights_of(load(logits + i), octaves));
    i += kLanes;
  }
  if (i < n) total.add(weights_of(load_tail(logits + i, n - i), octaves));
  return total.value();
}

void weights(const float* logits, int64_t n, const Octaves& octaves, uint32_t* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const U32x8 w = weights_of(load(logits + i), octaves);
    memcpy(out + i, &w, sizeof w);
  }
  if (i == n) return;
  const U32x8 w = weights_of(load_tail(logits + i, n - i), octaves);
  memcpy(out + i, &w, static_cast<size_t>(n - i) * sizeof(uint32_t));
}

// Writes the lanes whose bit is set to the front of `to`, and anything behind them: 8 in all.
TINYVLLM_INLINE void compress(uint32_t bits, I32x8 v, void* to) {
#if defined(__AVX2__)
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)kLanesOf.at[bits]));
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm256_permutevar8x32_epi32((__m256i)v, order));
#else
  int32_t packed[kLanes];
  int count = 0;
  for (int i = 0; i < kLanes; ++i) {
    packed[count] = v[i];
    count += static_cast<int>(bits >> i & 1);
  }
  memcpy(to, packed, sizeof packed);
#endif
}

int64_t collect(const float* logits, int64_t n, int32_t first_id, const Octaves& octaves,
                float* out_logits, int32_t* out_ids) {
  int64_t found = 0;
  I32x8 ids = I32x8{0, 1, 2, 3, 4, 5, 6, 7} + first_id;
  for (int64_t i = 0; i < n; i += kLanes, ids += kLanes) {
    const F32x8 v = i + kLanes <= n ? load(logits + i) : load_tail(logits + i, n - i);
    uint32_t bits = lane_bits(octaves_of(v, octaves) >= splat(octaves.floor));
    if (i + kLanes > n) bits &= (1u << (n - i)) - 1;
    compress(bits, (I32x8)v, out_logits + found);
    compress(bits, ids, out_ids + found);
    found += __builtin_popcount(bits);
  }
  return found;
}

// Lanes of a column's elements i to i + 7 that exist.
TINYVLLM_INLINE I32x8 existing(int64_t i, int64_t n) {
  const I32x8 lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  return n - i >= kLanes ? splat_i32(-1) : lanes < splat_i32(static_cast<int32_t>(n - i));
}

void mass_around(const float* values, const uint32_t* weights, int64_t n, const Interval& interval,
                 uint64_t* above, uint64_t* inside) {
  WeightSum more, at_least;
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x8 v = load(values + i);
    const I32x8 w = load_as<I32x8>(weights + i) & existing(i, n);
    more.add((U32x8)(w & (v > splat(interval.most))));
    at_least.add((U32x8)(w & (v >= splat(interval.least))));
  }
  *above = more.value();
  *inside = at_least.value() - *above;
}

int64_t keep(const float* keys, int64_t n, const Interval& interval, const Columns& from,
             const Columns& to) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x8 key = load(keys + i);
    const I32x8 values = load_as<I32x8>(from.values + i);
    const I32x8 ids = load_as<I32x8>(from.ids + i);
    const I32x8 weights = load_as<I32x8>(from.weights + i);
    const I32x8 least = (key == splat(interval.least)) & (ids <= splat_i32(interval.last_id));
    const I32x8 inside = (key > splat(interval.least)) & (key <= splat(interval.most));
    const uint32_t bits = lane_bits((least | inside) & existing(i, n));
    compress(bits, values, to.values + kept);
    compress(bits, ids, to.ids + kept);
    compress(bits, weights, to.weights + kept);
    kept += __builtin_popcount(bits);
  }
  return kept;
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {
    .block_maxima = block_maxima,
    .mass = mass,
    .weights = weights,
    .collect = collect,
    .mass_around = mass_around,
    .keep = keep,
};

}  // namespace tinyvllm::cpu_sampler::TINYVLLM_ISA
