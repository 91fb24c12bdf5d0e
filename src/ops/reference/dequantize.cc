#include "ops/reference/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace tinyvllm::ops::reference {
namespace {

using Block = const uint8_t*;

float f16_at(Block bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return f16_to_f32(bits);
}

int bits_at(uint8_t byte, int shift, int mask) { return byte >> shift & mask; }

// Every function below gives element i of one block.

float f32(Block b, int) {
  float value;
  std::memcpy(&value, b, sizeof value);
  return value;
}

float f16(Block b, int) { return f16_at(b); }

float bf16(Block b, int) {
  uint16_t bits;
  std::memcpy(&bits, b, sizeof bits);
  return bf16_to_f32(bits);
}

// The 32-element blocks keep elements 0–15 in the low nibbles of 16 bytes and 16–31 in the high
// ones.
int nibble(Block quants, int i) { return bits_at(quants[i % 16], i / 16 * 4, 15); }

// The fifth bits of 32 elements, in order.
int fifth_bit(Block bits, int i) { return bits_at(bits[i / 8], i % 8, 1) << 4; }

float q4_0(Block b, int i) {  // scale, 16 × 2 nibbles
  return f16_at(b) * static_cast<float>(nibble(b + 2, i) - 8);
}

float q4_1(Block b, int i) {  // scale, minimum, 16 × 2 nibbles
  return f16_at(b) * static_cast<float>(nibble(b + 4, i)) + f16_at(b + 2);
}

float q5_0(Block b, int i) {  // scale, 32 fifth bits, 16 × 2 nibbles
  return f16_at(b) * static_cast<float>((nibble(b + 6, i) | fifth_bit(b + 2, i)) - 16);
}

float q5_1(Block b, int i) {  // scale, minimum, 32 fifth bits, 16 × 2 nibbles
  return f16_at(b) * static_cast<float>(nibble(b + 8, i) | fifth_bit(b + 4, i)) + f16_at(b + 2);
}

float q8_0(Block b, int i) {  // scale, 32 signed bytes
  return f16_at(b) * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

// The 256-element blocks are sets of 16 or 32 elements with small integer scales, which are
// themselves scaled by an F16. Bits of equal weight of elements 32 apart share a byte.

// Two bits each: 128 elements in 32 bytes.
int crumb(Block quants, int i) { return bits_at(quants[i / 128 * 32 + i % 32], i / 32 % 4 * 2, 3); }

// Four bits each: 64 elements in 32 bytes.
int paired_nibble(Block quants, int i) {
  return bits_at(quants[i / 64 * 32 + i % 32], i / 32 % 2 * 4, 15);
}

float q2_k(Block b, int i) {  // 16 × (scale, minimum) nibbles, 256 crumbs, scale, minimum
  const uint8_t set = b[i / 16];
  const float scale = f16_at(b + 80) * static_cast<float>(set & 15);
  const float minimum = f16_at(b + 82) * static_cast<float>(set >> 4);
  return scale * static_cast<float>(crumb(b + 16, i)) - minimum;
}

float q3_k(Block b, int i) {  // 256 high bits, 256 crumbs, 16 six-bit scales, scale
  const Block scales = b + 96;
  const int set = i / 16;
  const int six_bits =
      bits_at(scales[set % 8], set / 8 * 4, 15) | bits_at(scales[8 + set % 4], set / 4 * 2, 3) << 4;
  const float scale = f16_at(b + 108) * static_cast<float>(six_bits - 32);
  const int high = bits_at(b[i % 32], i / 32, 1);
  return scale * static_cast<float>(crumb(b + 32, i) - (high != 0 ? 0 : 4));
}

// Q4_K and Q5_K: eight pairs of six-bit scale and minimum in twelve bytes. The first four pairs
// have bytes 0–3 and 4–7; the others have nibbles of bytes 8–11 and the two bits left over above.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum pair_at(Block packed, int set) {
  if (set < 4) return {packed[set] & 63, packed[set + 4] & 63};
  return {bits_at(packed[set + 4], 0, 15) | bits_at(packed[set - 4], 6, 3) << 4,
          bits_at(packed[set + 4], 4, 15) | bits_at(packed[set], 6, 3) << 4};
}

float scaled_pair(Block b, int set, int quant) {  // scale, minimum, 12 bytes of pairs
  const ScaleAndMinimum pair = pair_at(b + 4, set);
  const float scale = f16_at(b) * static_cast<float>(pair.scale);
  const float minimum = f16_at(b + 2) * static_cast<float>(pair.minimum);
  return scale * static_cast<float>(quant) - minimum;
}

float q4_k(Block b, int i) {  // …, 128 × 2 nibbles
  return scaled_pair(b, i / 32, paired_nibble(b + 16, i));
}

float q5_k(Block b, int i) {  // …, 256 fifth bits, 128 × 2 nibbles
  const int high = bits_at(b[16 + i % 32], i / 32, 1) << 4;
  return scaled_pair(b, i / 32, paired_nibble(b + 48, i) | high);
}

float q6_k(Block b, int i) {  // 128 × 2 nibbles, 256 crumbs, 16 signed scales, scale
  const int low = bits_at(b[i / 128 * 64 + i % 64], i / 64 % 2 * 4, 15);
  const int quant = (low | crumb(b + 128, i) << 4) - 32;
  const float scale = f16_at(b + 208) * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
  return scale * static_cast<float>(quant);
}

using Element = float (*)(Block block, int i);

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return f32;
    case DType::kF16:
      return f16;
    case DType::kBF16:
      return bf16;
    case DType::kQ4_0:
      return q4_0;
    case DType::kQ4_1:
      return q4_1;
    case DType::kQ5_0:
      return q5_0;
    case DType::kQ5_1:
      return q5_1;
    case DType::kQ8_0:
      return q8_0;
    case DType::kQ2_K:
      return q2_k;
    case DType::kQ3_K:
      return q3_k;
    case DType::kQ4_K:
      return q4_k;
    case DType::kQ5_K:
      return q5_k;
    case DType::kQ6_K:
      return q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_dequantize(DType dtype) { return element_of(dtype) != nullptr; }

void dequantize(DType dtype, const void* row, int64_t elements, float* out) {
  const DTypeInfo& info = dtype_info(dtype);
  const Element element = element_of(dtype);
  CHECK(element != nullptr) << info.name << " is not computed with";
  CHECK(elements % info.block_elements == 0) << elements << " elements of " << info.name;
  Block block = static_cast<Block>(row);
  for (int64_t done = 0; done < elements; done += info.block_elements, block += info.block_bytes) {
    for (int i = 0; i < info.block_elements; ++i) out[done + i] = element(block, i);
  }
}

}  // namespace tinyvllm::ops::reference
