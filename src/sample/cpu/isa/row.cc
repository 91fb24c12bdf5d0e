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
      ((splat(kExp2[4]) * f + splat(kExp2[3])) * f2 + (splat(kExp2[2]) * f + splat(kExp2[1]))) *
          f2 +
      (splat(kExp2[0]) * f + splat(1.0f));
  const U32x8 exponent = ((U32x8)shifted + 30) << 23;
  const F32x8 scaled = (F32x8)((U32x8)p + exponent) + splat(0.5f);
  // Lanes under the floor hold anything at all; only the mask makes them nothing.
  return (U32x8)(__builtin_convertvector(scaled, I32x8) & (octaves >= splat(o.floor)));
}

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
  U64x4 even{}, odd{};
  const auto add = [&](U32x8 w) __attribute__((always_inline)) {
    even += (U64x4)w & 0xFFFFFFFFu;
    odd += (U64x4)w >> 32;
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {  // two weights fit 32 bits
    add(weights_of(load(logits + i), octaves) + weights_of(load(logits + i + kLanes), octaves));
  }
  if (i + kLanes <= n) {
    add(weights_of(load(logits + i), octaves));
    i += kLanes;
  }
  if (i < n) add(weights_of(load_tail(logits + i, n - i), octaves));
  even += odd;
  return even[0] + even[1] + even[2] + even[3];
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

int64_t collect(const float* logits, int64_t n, int32_t first_id, const Octaves& octaves,
                float* out_logits, int32_t* out_ids) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x8 v = i + kLanes <= n ? load(logits + i) : load_tail(logits + i, n - i);
    uint32_t bits = lane_bits(octaves_of(v, octaves) >= splat(octaves.floor));
    if (i + kLanes > n) bits &= (1u << (n - i)) - 1;
    for (; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      out_logits[found] = logits[i + lane];
      out_ids[found++] = first_id + static_cast<int32_t>(i) + lane;
    }
  }
  return found;
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {
    .block_maxima = block_maxima,
    .mass = mass,
    .weights = weights,
    .collect = collect,
};

}  // namespace tinyvllm::cpu_sampler::TINYVLLM_ISA
