// 32 columns of a packed row, as floats.
#pragma once

#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {

constexpr int kSpan = 32;  // columns that one lane takes at a time

// x in shared memory: halves, zero after the last column. Beside quantized rows, of which a lane
// takes 32 columns at a time, 8 halves of nothing follow each 32, so that lanes do not meet in a
// bank.
template <Form kForm>
__device__ constexpr int64_t staged_at(int64_t column) {
  return kForm == Form::kHalf ? column : column + column / kSpan * 8;
}

// The codes of columns [32 s, 32 s + 32) of a row, raw.
template <Form kForm>
struct Codes {
  uint4 low[kForm == Form::k8 ? 2 : 1];
  uint2 high;
  float2 scale[2];  // (scale, min) of columns 0…15 and 16…31

  __device__ void load(const Packed& p, int64_t row, int64_t span) {
    const int64_t spans = p.stride / kSpan;
    const int64_t at = row * spans + span;
    if constexpr (kForm == Form::k8) {
      low[0] = static_cast<const uint4*>(p.low)[2 * at];
      low[1] = static_cast<const uint4*>(p.low)[2 * at + 1];
    } else {
      low[0] = static_cast<const uint4*>(p.low)[at];
    }
    if constexpr (kForm == Form::k5) high.x = static_cast<const uint32_t*>(p.high)[at];
    if constexpr (kForm == Form::k6) high = static_cast<const uint2*>(p.high)[at];
    const auto* scales = static_cast<const __half2*>(p.scales);
    scale[0] = __half22float2(scales[p.group == 32 ? at : 2 * at]);
    scale[1] = p.group == 32 ? scale[0] : __half22float2(scales[2 * at + 1]);
  }

  // Column i of the 32; i is a constant wherever this is called.
  __device__ float code(int i) const {
    if constexpr (kForm == Form::k8) {
      const auto* words = reinterpret_cast<const uint32_t*>(low);
      return static_cast<float>(static_cast<int8_t>(words[i / 4] >> (8 * (i % 4))));
    } else {
      const auto* words = reinterpret_cast<const uint32_t*>(low);
      const int j = i % 16;
      uint32_t value = words[j / 4] >> (8 * (j % 4) + 4 * (i / 16)) & 15u;
      if constexpr (kForm == Form::k5) value |= (high.x >> i & 1u) << 4;
      if constexpr (kForm == Form::k6) {
        value |= ((i < 16 ? high.x : high.y) >> (2 * j) & 3u) << 4;
      }
      return static_cast<float>(value);
    }
  }
  __device__ float value(int i) const { return scale[i / 16].x * code(i) + scale[i / 16].y; }
};

}  // namespace tinyvllm::ops::cuda
