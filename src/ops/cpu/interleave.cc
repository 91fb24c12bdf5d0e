// Packs rows as the file has them into groups (interleaved.h): scales and quants are moved, never
// changed, so the numbers are those of the file.
#include <cstring>

#include "base/check.h"
#include "ops/cpu/interleaved.h"
#include "ops/cpu/linear_weights.h"

namespace tinyvllm::ops::cpu {
namespace {

using Bytes = const uint8_t*;

uint16_t half_at(Bytes at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
uint32_t word_at(Bytes at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void put(Word& word, int row, uint32_t value) { std::memcpy(word[row], &value, sizeof value); }

// 16 bytes of nibbles, columns j and j + 16 in a byte: the file's pairing is ours.
void pack_nibbles(Bytes q, int row, Word* words) {
  for (int v = 0; v < 4; ++v) put(words[v], row, word_at(q + 4 * v));
}

// 32 bits, one per column → bit g of byte i is column 4g + i.
uint32_t transpose_bits(uint32_t bits) {
  uint32_t word = 0;
  for (int g = 0; g < 8; ++g) {
    const uint32_t four = bits >> (4 * g) & 15;
    word |= ((four * 0x00204081u) & 0x01010101u) << g;  // bit i to the lowest of byte i
  }
  return word;
}

// Every function below packs one row's block.

void pack(Bytes b, int row, PackedQ4_0* to) {  // scale, nibbles
  to->scale[row] = half_at(b);
  pack_nibbles(b + 2, row, to->nibbles);
}

void pack(Bytes b, int row, PackedQ4_1* to) {  // scale, minimum, nibbles
  to->scale[row] = half_at(b);
  to->min[row] = half_at(b + 2);
  pack_nibbles(b + 4, row, to->nibbles);
}

void pack(Bytes b, int row, PackedQ5_0* to) {  // scale, fifth bits, nibbles
  to->scale[row] = half_at(b);
  put(to->fifth, row, transpose_bits(word_at(b + 2)));
  pack_nibbles(b + 6, row, to->nibbles);
}

void pack(Bytes b, int row, PackedQ5_1* to) {  // scale, minimum, fifth bits, nibbles
  to->scale[row] = half_at(b);
  to->min[row] = half_at(b + 2);
  put(to->fifth, row, transpose_bits(word_at(b + 4)));
  pack_nibbles(b + 8, row, to->nibbles);
}

void pack(Bytes b, int row, PackedQ8_0* to) {  // scale, bytes
  to->scale[row] = half_at(b);
  for (int g = 0; g < 8; ++g) put(to->q[g], kQ8Slot[row], word_at(b + 2 + 4 * g));
}

// 64 columns in 32 bytes, columns j and j + 32 in a byte → two sub-blocks of 32.
void pack_nibbles64(Bytes q, int row, Word (*words)[4]) {
  constexpr uint32_t kLow = 0x0F0F0F0Fu;
  for (int v = 0; v < 4; ++v) {
    const uint32_t first = word_at(q + 4 * v);        // columns 4v…
    const uint32_t second = word_at(q + 16 + 4 * v);  // columns 16 + 4v…
    put(words[0][v], row, (first & kLow) | (second & kLow) << 4);
    put(words[1][v], row, (first >> 4 & kLow) | (second & ~kLow));
  }
}

// 12 bytes hold eight 6-bit scales and eight 6-bit minima.
template <class Packed>
void pack_scales_mins(Bytes b, int row, Packed* to) {
  for (int j = 0; j < 8; ++j) {
    const int low = j % 4;
    const int scale = j < 4 ? b[low] & 63 : (b[8 + low] & 15) | b[low] >> 6 << 4;
    const int min = j < 4 ? b[4 + low] & 63 : b[8 + low] >> 4 | b[4 + low] >> 6 << 4;
    to->scales[j][row] = static_cast<uint8_t>(scale);
    to->mins[j / 2][row][j % 2] = static_cast<uint8_t>(min);
  }
}

void pack(Bytes b, int row, PackedQ4_K* to) {  // scale, minimum, 12 bytes, nibbles
  to->scale[row] = half_at(b);
  to->min[row] = half_at(b + 2);
  pack_scales_mins(b + 4, row, to);
  for (int c = 0; c < 4; ++c) pack_nibbles64(b + 16 + 32 * c, row, to->nibbles + 2 * c);
}

void pack(Bytes b, int row, PackedQ5_K* to) {  // …, fifth bits (bit s of byte j), nibbles
  to->scale[row] = half_at(b);
  to->min[row] = half_at(b + 2);
  pack_scales_mins(b + 4, row, to);
  for (int s = 0; s < 8; ++s) {
    uint32_t word = 0;
    for (int g = 0; g < 8; ++g) {
      word |= (word_at(b + 16 + 4 * g) >> s & 0x01010101u) << g;
    }
    put(to->fifth[s], row, word);
  }
  for (int c = 0; c < 4; ++c) pack_nibbles64(b + 48 + 32 * c, row, to->nibbles + 2 * c);
}

// Nibbles (128), upper pairs (64), signed scales (16), scale. Of each 128 columns, 32 bytes of
// pairs serve columns j, j+32, j+64, j+96; 64 bytes of nibbles hold columns j and j + 64.
void pack(Bytes b, int row, PackedQ6_K* to) {
  to->scale[row] = half_at(b + 208);
  for (int s = 0; s < 16; ++s) {
    to->scales[s][row] = b[192 + s];
    const int half = s / 8;
    const int quarter = s % 8 / 2;  // which 32 columns of the half
    Bytes nibbles = b + 64 * half + 32 * (quarter % 2) + 16 * (s % 2);
    Bytes pairs = b + 128 + 32 * half + 16 * (s % 2);
    uint32_t low[4];
    uint32_t top = 0;
    for (int g = 0; g < 4; ++g) {
      low[g] = word_at(nibbles + 4 * g) >> (quarter / 2 * 4) & 0x0F0F0F0Fu;
      top |= (word_at(pairs + 4 * g) >> (2 * quarter) & 0x03030303u) << (2 * g);
    }
    put(to->nibbles[s][0], row, low[0] | low[2] << 4);
    put(to->nibbles[s][1], row, low[1] | low[3] << 4);
    put(to->top[s], row, top);
  }
}

// Pairs of a sub-block of 16 columns: of each 128 columns, 32 bytes hold columns j, j+32, j+64 and
// j+96 in two bits each.
uint32_t pack_pairs(Bytes q, int s) {
  Bytes pairs = q + 32 * (s / 8) + 16 * (s % 2);
  uint32_t word = 0;
  for (int g = 0; g < 4; ++g) {
    word |= (word_at(pairs + 4 * g) >> (2 * (s % 8 / 2)) & 0x03030303u) << (2 * g);
  }
  return word;
}

void pack(Bytes b, int row, PackedQ3_K* to) {  // third bits (32), pairs (64), 12 bytes, scale
  to->scale[row] = half_at(b + 108);
  Bytes scales = b + 96;
  for (int s = 0; s < 16; ++s) {
    const int low = scales[s % 8] >> (s / 8 * 4) & 15;
    const int high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
    to->scales[s][row] = static_cast<uint8_t>((low | high << 4) - 32);
    put(to->pairs[s], row, pack_pairs(b + 32, s));
  }
  for (int s = 0; s < 16; s += 2) {  // bit s/2 of byte j is column 32 · (s/2) + j
    uint32_t word = 0;
    for (int g = 0; g < 8; ++g) word |= (word_at(b + 4 * g) >> (s / 2) & 0x01010101u) << g;
    put(to->third[s / 2], row, word);
  }
}

void pack(Bytes b, int row, PackedQ2_K* to) {  // scales and minima (16), pairs (64), scale, minimum
  to->scale[row] = half_at(b + 80);
  to->min[row] = half_at(b + 82);
  for (int s = 0; s < 16; ++s) {
    to->scales[s][row] = b[s];
    put(to->pairs[s], row, pack_pairs(b + 16, s));
  }
}

template <class Packed>
void pack_rows(DType dtype, const void* source, int rows, int64_t blocks, void* group) {
  const auto bytes = static_cast<size_t>(dtype_info(dtype).block_bytes);
  auto* packed = static_cast<Packed*>(group);
  if (rows < kRowGroup) std::memset(group, 0, static_cast<size_t>(blocks) * sizeof(Packed));
  for (int64_t b = 0; b < blocks; ++b) {
    for (int row = 0; row < rows; ++row) {
      pack(static_cast<Bytes>(source) + static_cast<size_t>(row * blocks + b) * bytes, row,
           packed + b);
    }
  }
}

struct Format {
  DType dtype;
  size_t block_bytes;  // of 8 rows
  void (*pack)(DType dtype, const void* source, int rows, int64_t blocks, void* group);
};

template <class Packed>
constexpr Format format(DType dtype) {
  return {dtype, sizeof(Packed), pack_rows<Packed>};
}

constexpr Format kFormats[] = {
    format<PackedQ4_0>(DType::kQ4_0), format<PackedQ4_1>(DType::kQ4_1),
    format<PackedQ5_0>(DType::kQ5_0), format<PackedQ5_1>(DType::kQ5_1),
    format<PackedQ8_0>(DType::kQ8_0), format<PackedQ2_K>(DType::kQ2_K),
    format<PackedQ3_K>(DType::kQ3_K), format<PackedQ4_K>(DType::kQ4_K),
    format<PackedQ5_K>(DType::kQ5_K), format<PackedQ6_K>(DType::kQ6_K),
};

const Format* find(DType dtype) {
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

}  // namespace

size_t interleaved_bytes(DType dtype, int64_t k) {
  const Format* format = find(dtype);
  if (format == nullptr) return 0;
  return static_cast<size_t>(k / dtype_info(dtype).block_elements) * format->block_bytes;
}

void interleave(DType dtype, const void* source, int rows, int64_t k, void* group) {
  const Format* format = find(dtype);
  CHECK(format != nullptr) << dtype_name(dtype) << " is not interleaved";
  format->pack(dtype, source, rows, k / dtype_info(dtype).block_elements, group);
}

}  // namespace tinyvllm::ops::cpu
