// quantize_row, and the types whose 32 numbers share one scale.
#include "ops/reference/quantize.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "ops/reference/fit_scale.h"
#include "ops/reference/quantize_blocks.h"

namespace tinyvllm::ops::reference {
namespace {

constexpr int kBlock = 32;

// Code j in the low half of byte j, code j + 16 in the high half.
void pack_nibbles(const uint8_t* codes, uint8_t* bytes) {
  for (int j = 0; j < kBlock / 2; ++j) {
    bytes[j] = static_cast<uint8_t>((codes[j] & 15) | codes[j + kBlock / 2] << 4);
  }
}

// Fifth bits of 32 codes, bit j for code j.
void pack_fifth_bits(const uint8_t* codes, uint8_t* bytes) {
  uint32_t bits = 0;
  for (int j = 0; j < kBlock; ++j) bits |= static_cast<uint32_t>(codes[j] >> 4) << j;
  std::memcpy(bytes, &bits, sizeof bits);
}

// Stores the scale and finds the codes, which stand for scale · (code − levels).
void encode_signed(const float* x, int levels, uint8_t* scale_at, uint8_t* codes) {
  const float scale = put_half(scale_at, fit_scale(x, kBlock, levels));
  encode(x, kBlock, {scale, -scale * static_cast<float>(levels)}, 2 * levels - 1, codes);
}

// Stores scale and minimum and finds the codes, which stand for scale · code + minimum.
void encode_with_min(const float* x, int top, uint8_t* scale_at, uint8_t* codes) {
  ScaleMin fit = fit_scale_min(x, kBlock, top, MinSign::kAny);
  fit.scale = put_half(scale_at, fit.scale);
  fit.min = put_half(scale_at + 2, fit.min);
  encode(x, kBlock, fit, top, codes);
}

using QuantizeBlock = void (*)(const float*, uint8_t*);

QuantizeBlock block_quantizer(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return quantize_q8_0;
    case DType::kQ4_0:
      return quantize_q4_0;
    case DType::kQ4_1:
      return quantize_q4_1;
    case DType::kQ5_0:
      return quantize_q5_0;
    case DType::kQ5_1:
      return quantize_q5_1;
    case DType::kQ2_K:
      return quantize_q2_k;
    case DType::kQ3_K:
      return quantize_q3_k;
    case DType::kQ4_K:
      return quantize_q4_k;
    case DType::kQ5_K:
      return quantize_q5_k;
    case DType::kQ6_K:
      return quantize_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

// Eight bits need no search: the largest magnitude becomes ±127.
void quantize_q8_0(const float* x, uint8_t* block) {
  float largest = 0;
  for (int j = 0; j < kBlock; ++j) largest = std::fmax(largest, std::fabs(x[j]));
  const float scale = put_half(block, largest / 127);
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int j = 0; j < kBlock; ++j) {
    const float code = std::fmin(127.0f, std::fmax(-127.0f, std::nearbyint(x[j] * inverse)));
    block[2 + j] = static_cast<uint8_t>(static_cast<int8_t>(code));
  }
}

void quantize_q4_0(const float* x, uint8_t* block) {  // scale, nibbles
  uint8_t codes[kBlock];
  encode_signed(x, 8, block, codes);
  pack_nibbles(codes, block + 2);
}

void quantize_q4_1(const float* x, uint8_t* block) {  // scale, minimum, nibbles
  uint8_t codes[kBlock];
  encode_with_min(x, 15, block, codes);
  pack_nibbles(codes, block + 4);
}

void quantize_q5_0(const float* x, uint8_t* block) {  // scale, fifth bits, nibbles
  uint8_t codes[kBlock];
  encode_signed(x, 16, block, codes);
  pack_fifth_bits(codes, block + 2);
  pack_nibbles(codes, block + 6);
}

void quantize_q5_1(const float* x, uint8_t* block) {  // scale, minimum, fifth bits, nibbles
  uint8_t codes[kBlock];
  encode_with_min(x, 31, block, codes);
  pack_fifth_bits(codes, block + 4);
  pack_nibbles(codes, block + 8);
}

bool can_quantize(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         block_quantizer(dtype) != nullptr;
}

void quantize_row(DType dtype, const float* values, int64_t n, void* row) {
  auto* bytes = static_cast<uint8_t*>(row);
  if (dtype == DType::kF32) {
    std::memcpy(row, values, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t half = dtype == DType::kF16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
      std::memcpy(bytes + 2 * i, &half, sizeof half);
    }
    return;
  }
  const QuantizeBlock quantize = block_quantizer(dtype);
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(quantize != nullptr && n % info.block_elements == 0)
      << n << " numbers cannot become " << info.name;
  for (int64_t i = 0; i < n; i += info.block_elements, bytes += info.block_bytes) {
    quantize(values + i, bytes);
  }
}

}  // namespace tinyvllm::ops::reference
