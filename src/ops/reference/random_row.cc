#include "ops/reference/random_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "ops/reference/quantize.h"
#include "ops/reference/quantize_blocks.h"

namespace tinyvllm::ops::reference {
namespace {

// SplitMix64: a counter and a hash of it.
class Random {
 public:
  explicit Random(uint64_t key) : state_(key) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  // Bits of `set` are one in every eight bytes.
  void fill(uint8_t* bytes, int count, uint64_t set = 0) {
    for (; count > 0; count -= 8, bytes += 8) {
      const uint64_t bits = next() | set;
      std::memcpy(bytes, &bits, static_cast<size_t>(std::min(count, 8)));
    }
  }

 private:
  uint64_t state_;
};

// The root mean square of codes 0 … 2^bits − 1 around their middle.
float spread(int bits) {
  const auto codes = static_cast<float>(1 << bits);
  return std::sqrt((codes * codes - 1) / 12);
}

// Codes −levels … levels − 1 have the mean −½; a scale of either sign takes it away again.
float sign_of(uint64_t bits) { return (bits & 1) != 0 ? -1.0f : 1.0f; }

struct Block {
  int bits;   // of a code
  int codes;  // bytes of codes, after the scales
};

// Blocks of 32 whose codes are signed (one scale) or lie above a minimum (scale and minimum).
void simple_block(Block kind, bool has_min, float size, Random& random, uint8_t* block) {
  const float scale = size / spread(kind.bits);
  if (has_min) {
    put_half(block, scale);
    put_half(block + 2, -scale * (static_cast<float>(1 << kind.bits) - 1) / 2);
    random.fill(block + 4, kind.codes);
  } else {
    put_half(block, scale * sign_of(random.next()));
    random.fill(block + 2, kind.codes);
  }
}

// Odd codes −127 … 127: no −128, which nobody writes, and no mean.
void q8_0_block(float size, Random& random, uint8_t* block) {
  put_half(block, size / spread(8));
  random.fill(block + 2, 32, 0x0101010101010101u);
}

// Groups of a super-block share 6-bit scales 32 … 63; minima equal to them, under a common minimum
// that is half the range, keep the mean at zero.
void k_block_with_min(Block kind, float size, Random& random, uint8_t* block) {
  constexpr float kMeanScale = 48;
  const float scale = size / (spread(kind.bits) * kMeanScale);
  put_half(block, scale);
  put_half(block + 2, scale * (static_cast<float>(1 << kind.bits) - 1) / 2);
  const uint64_t bits = random.next();
  for (int g = 0; g < 4; ++g) {
    const auto first = static_cast<int>(32 | (bits >> 10 * g & 31));
    const auto second = static_cast<int>(32 | (bits >> (10 * g + 5) & 31));
    block[4 + g] = block[8 + g] = static_cast<uint8_t>(first | second >> 4 << 6);
    block[12 + g] = static_cast<uint8_t>((second & 15) | second << 4);
  }
  random.fill(block + 16, kind.codes);
}

void q2_k_block(float size, Random& random, uint8_t* block) {
  constexpr float kMeanScale = 11.5f;  // of 8 … 15
  const float scale = size / (spread(2) * kMeanScale);
  const uint64_t bits = random.next();
  for (int g = 0; g < 16; ++g) {
    const auto nibble = static_cast<int>(8 | (bits >> 3 * g & 7));
    block[g] = static_cast<uint8_t>(nibble | nibble << 4);
  }
  random.fill(block + 16, 64);
  put_half(block + 80, scale);
  put_half(block + 82, scale * 1.5f);
}

// Scales are 6 bits around 32: any bits will do, and both signs come up.
void q3_k_block(float size, Random& random, uint8_t* block) {
  random.fill(block, 108);
  put_half(block + 108, size / (spread(3) * spread(6)));
}

void q6_k_block(float size, Random& random, uint8_t* block) {
  random.fill(block, 192);
  random.fill(block + 192, 16, 0x0101010101010101u);  // odd scales
  put_half(block + 208, size / (spread(6) * spread(8)));
}

void random_block(DType dtype, float size, Random& random, uint8_t* block) {
  switch (dtype) {
    case DType::kQ8_0:
      return q8_0_block(size, random, block);
    case DType::kQ4_0:
      return simple_block({4, 16}, false, size, random, block);
    case DType::kQ4_1:
      return simple_block({4, 16}, true, size, random, block);
    case DType::kQ5_0:
      return simple_block({5, 20}, false, size, random, block);
    case DType::kQ5_1:
      return simple_block({5, 20}, true, size, random, block);
    case DType::kQ2_K:
      return q2_k_block(size, random, block);
    case DType::kQ3_K:
      return q3_k_block(size, random, block);
    case DType::kQ4_K:
      return k_block_with_min({4, 128}, size, random, block);
    case DType::kQ5_K:
      return k_block_with_min({5, 160}, size, random, block);
    case DType::kQ6_K:
      return q6_k_block(size, random, block);
    default:
      CHECK(false) << "no random blocks of " << dtype_name(dtype);
  }
}

// Floats with a random sign and random digits but one exponent: magnitudes are even in
// [2^e, 2^(e+1)), whose root mean square is 1.53 · 2^e.
template <class Bits>
void random_floats(int mantissa_bits, int bias, int64_t n, float size, Random& random, void* row) {
  const int exponent = static_cast<int>(std::lround(std::log2(size / 1.5275f))) + bias;
  constexpr int kBits = 8 * sizeof(Bits);
  const auto fixed = static_cast<Bits>(static_cast<Bits>(exponent) << mantissa_bits);
  const auto free = static_cast<Bits>(((Bits{1} << mantissa_bits) - 1) | Bits{1} << (kBits - 1));
  auto* out = static_cast<char*>(row);
  for (int64_t i = 0; i < n;) {
    uint64_t bits = random.next();
    for (int k = 0; k < 64 / kBits && i < n; ++k, ++i, out += sizeof(Bits)) {
      const auto value = static_cast<Bits>((static_cast<Bits>(bits) & free) | fixed);
      std::memcpy(out, &value, sizeof value);
      bits >>= kBits;
    }
  }
}

}  // namespace

bool can_randomize(DType dtype) { return can_quantize(dtype); }

void random_row(DType dtype, int64_t n, float size, uint64_t key, void* row) {
  Random random(key);
  if (dtype == DType::kF32) return random_floats<uint32_t>(23, 127, n, size, random, row);
  if (dtype == DType::kF16) return random_floats<uint16_t>(10, 15, n, size, random, row);
  if (dtype == DType::kBF16) return random_floats<uint16_t>(7, 127, n, size, random, row);
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(n % info.block_elements == 0) << n << " numbers of " << info.name;
  auto* block = static_cast<uint8_t*>(row);
  for (int64_t i = 0; i < n; i += info.block_elements, block += info.block_bytes) {
    random_block(dtype, size, random, block);
  }
}

}  // namespace tinyvllm::ops::reference
