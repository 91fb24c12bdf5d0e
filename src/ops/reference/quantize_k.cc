// The K types: super-blocks of 256 numbers whose groups of 16 or 32 have small integer scales under
// one F16 scale. First every group is fitted on its own, then the integer scales are chosen under
// the common one, then the codes for what was stored.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/reference/fit_scale.h"
#include "ops/reference/quantize_blocks.h"

namespace tinyvllm::ops::reference {
namespace {

constexpr int kSuper = 256;
constexpr int kMaxGroups = 16;

int nearest(float value, float unit, int low, int high) {
  if (unit == 0) return 0;
  return std::clamp(static_cast<int>(std::lrint(value / unit)), low, high);
}

// Scales and minima of a super-block with offsets, as stored: group g stands for
// scale · scales[g] · code − min · mins[g].
struct Offsets {
  uint8_t scales[kMaxGroups];
  uint8_t mins[kMaxGroups];
  uint8_t codes[kSuper];
};

// `scale_at` gets two F16: the common scale and the common minimum. Integer scales go up to `most`.
Offsets encode_offsets(const float* x, int group, int top, int most, uint8_t* scale_at) {
  const int groups = kSuper / group;
  ScaleMin fits[kMaxGroups];
  float largest_scale = 0, largest_min = 0;
  for (int g = 0; g < groups; ++g) {
    fits[g] = fit_scale_min(x + g * group, group, top, MinSign::kNotPositive);
    largest_scale = std::max(largest_scale, fits[g].scale);
    largest_min = std::max(largest_min, -fits[g].min);
  }
  const float scale = put_half(scale_at, largest_scale / static_cast<float>(most));
  const float min = put_half(scale_at + 2, largest_min / static_cast<float>(most));
  Offsets result;
  for (int g = 0; g < groups; ++g) {
    const float* part = x + g * group;
    const int s = nearest(fits[g].scale, scale, 0, most);
    const int m = nearest(-fits[g].min, min, 0, most);
    // Rounding scale and minimum apart is not the best for both: their neighbours compete.
    float least = std::numeric_limits<float>::max();
    ScaleMin best;
    for (int si = std::max(s - 1, 0); si <= std::min(s + 1, most); ++si) {
      for (int mi = std::max(m - 1, 0); mi <= std::min(m + 1, most); ++mi) {
        const ScaleMin stored{scale * static_cast<float>(si), -min * static_cast<float>(mi)};
        const float error = fit_error(part, group, stored, top);
        if (error >= least) continue;
        least = error;
        best = stored;
        result.scales[g] = static_cast<uint8_t>(si);
        result.mins[g] = static_cast<uint8_t>(mi);
      }
    }
    encode(part, group, best, top, result.codes + g * group);
  }
  return result;
}

// The same without offsets: group g stands for scale · scales[g] · (code − levels).
struct Signed {
  int8_t scales[kMaxGroups];
  uint8_t codes[kSuper];
};

// Integer scales lie in [-most, most − 1]; the largest scale gets −most.
Signed encode_signed(const float* x, int levels, int most, uint8_t* scale_at) {
  constexpr int kGroup = 16;
  float fits[kSuper / kGroup];
  float extreme = 0;
  for (int g = 0; g < kSuper / kGroup; ++g) {
    fits[g] = fit_scale(x + g * kGroup, kGroup, levels);
    if (std::fabs(fits[g]) > std::fabs(extreme)) extreme = fits[g];
  }
  const float scale = put_half(scale_at, -extreme / static_cast<float>(most));
  Signed result;
  for (int g = 0; g < kSuper / kGroup; ++g) {
    const int s = nearest(fits[g], scale, -most, most - 1);
    result.scales[g] = static_cast<int8_t>(s);
    const float stored = scale * static_cast<float>(s);
    encode(x + g * kGroup, kGroup, {stored, -stored * static_cast<float>(levels)}, 2 * levels - 1,
           result.codes + g * kGroup);
  }
  return result;
}

// Eight 6-bit scales and minima in 12 bytes: the first four of each in six bits, the high two bits
// of these bytes and the last four bytes hold the other four.
void pack_scales_mins(const Offsets& o, uint8_t* bytes) {
  for (int g = 0; g < 4; ++g) {
    const int s = o.scales[g + 4], m = o.mins[g + 4];
    bytes[g] = static_cast<uint8_t>(o.scales[g] | s >> 4 << 6);
    bytes[g + 4] = static_cast<uint8_t>(o.mins[g] | m >> 4 << 6);
    bytes[g + 8] = static_cast<uint8_t>((s & 15) | m << 4);
  }
}

// Low halves: of every 64 codes, code l and code l + 32 share byte l.
void pack_nibbles(const uint8_t* codes, uint8_t* bytes) {
  for (int chunk = 0; chunk < kSuper; chunk += 64) {
    for (int l = 0; l < 32; ++l) {
      *bytes++ = static_cast<uint8_t>((codes[chunk + l] & 15) | codes[chunk + l + 32] << 4);
    }
  }
}

// Low two bits: of every 128 codes, codes l, l + 32, l + 64 and l + 96 share byte l.
void pack_pairs(const uint8_t* codes, int shift, uint8_t* bytes) {
  for (int chunk = 0; chunk < kSuper; chunk += 128) {
    for (int l = 0; l < 32; ++l) {
      int byte = 0;
      for (int part = 0; part < 4; ++part) {
        byte |= (codes[chunk + part * 32 + l] >> shift & 3) << 2 * part;
      }
      *bytes++ = static_cast<uint8_t>(byte);
    }
  }
}

// One bit of each code: code j is bit j / 32 of byte j % 32.
void pack_bits(const uint8_t* codes, int bit, uint8_t* bytes) {
  std::memset(bytes, 0, 32);
  for (int j = 0; j < kSuper; ++j) {
    bytes[j % 32] = static_cast<uint8_t>(bytes[j % 32] | (codes[j] >> bit & 1) << j / 32);
  }
}

}  // namespace

void quantize_q2_k(const float* x, uint8_t* block) {  // scale and min nibbles, codes, scale, min
  const Offsets o = encode_offsets(x, 16, 3, 15, block + 80);
  for (int g = 0; g < 16; ++g) block[g] = static_cast<uint8_t>(o.scales[g] | o.mins[g] << 4);
  pack_pairs(o.codes, 0, block + 16);
}

void quantize_q3_k(const float* x, uint8_t* block) {  // high bits, low pairs, scales, scale
  const Signed s = encode_signed(x, 4, 32, block + 108);
  pack_bits(s.codes, 2, block);
  pack_pairs(s.codes, 0, block + 32);
  uint8_t* scales = block + 96;  // 6 bits each: 16 nibbles, then 16 pairs
  std::memset(scales, 0, 12);
  for (int g = 0; g < 16; ++g) {
    const int biased = s.scales[g] + 32;
    scales[g % 8] = static_cast<uint8_t>(scales[g % 8] | (biased & 15) << g / 8 * 4);
    scales[8 + g % 4] = static_cast<uint8_t>(scales[8 + g % 4] | biased >> 4 << g / 4 * 2);
  }
}

void quantize_q4_k(const float* x, uint8_t* block) {  // scale, min, 6-bit scales, nibbles
  const Offsets o = encode_offsets(x, 32, 15, 63, block);
  pack_scales_mins(o, block + 4);
  pack_nibbles(o.codes, block + 16);
}

void quantize_q5_k(const float* x,
                   uint8_t* block) {  // scale, min, 6-bit scales, high bits, nibbles
  const Offsets o = encode_offsets(x, 32, 31, 63, block);
  pack_scales_mins(o, block + 4);
  pack_bits(o.codes, 4, block + 16);
  pack_nibbles(o.codes, block + 48);
}

void quantize_q6_k(const float* x, uint8_t* block) {  // low nibbles, high pairs, scales, scale
  const Signed s = encode_signed(x, 32, 128, block + 208);
  uint8_t* low = block;
  for (int chunk = 0; chunk < kSuper; chunk += 128) {
    for (int l = 0; l < 64; ++l) {  // codes l and l + 64 of every 128 share a byte
      *low++ = static_cast<uint8_t>((s.codes[chunk + l] & 15) | s.codes[chunk + l + 64] << 4);
    }
  }
  pack_pairs(s.codes, 4, block + 128);
  std::memcpy(block + 192, s.scales, 16);
}

}  // namespace tinyvllm::ops::reference
