// One block of each quantized type, for quantize_row. Inside reference/ only.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace tinyvllm::ops::reference {

// Blocks of 32 under one scale (quantize.cc).
void quantize_q8_0(const float* x, uint8_t* block);
void quantize_q4_0(const float* x, uint8_t* block);
void quantize_q4_1(const float* x, uint8_t* block);
void quantize_q5_0(const float* x, uint8_t* block);
void quantize_q5_1(const float* x, uint8_t* block);

// Blocks of 256 under two levels of scales (quantize_k.cc).
void quantize_q2_k(const float* x, uint8_t* block);
void quantize_q3_k(const float* x, uint8_t* block);
void quantize_q4_k(const float* x, uint8_t* block);
void quantize_q5_k(const float* x, uint8_t* block);
void quantize_q6_k(const float* x, uint8_t* block);

// Stores a float as F16 and gives back what a reader will see.
inline float put_half(uint8_t* at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
  return f16_to_f32(half);
}

}  // namespace tinyvllm::ops::reference
