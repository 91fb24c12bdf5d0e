// Rows as files have them, looked at on the card: whether they are numbers. All that came with
// one upload is looked at by one kernel: files have hundreds of tensors, and each of them would
// take as long as its launch.
#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMost = 32;  // a power of two; they fit a kernel's arguments

// What a thread looks at: 16 bytes of floats, or a block.
struct Look {
  const char* data;
  int64_t bytes;
  int64_t row_bytes;
  uint64_t host;
  int each;
  uint32_t exponent;  // floats: all ones is a NaN or an infinity
  int float_bytes;
  BlockScales scales;
};
struct Looks {
  Look look[kMost];
  unsigned end[kMost];  // of its thread blocks
  uint64_t* first;
};

// The first of up to 16 bytes of floats that is none, or -1.
template <class Bits>
__device__ int first_no_number(const char* data, int64_t bytes, uint32_t exponent) {
  constexpr int kEach = sizeof(Bits);
  const auto bad = [&](Bits bits) { return (bits & exponent) == exponent; };
  int first = -1;
  if (bytes < 16) {
    for (int at = static_cast<int>(bytes) - kEach; at >= 0; at -= kEach) {
      if (bad(*reinterpret_cast<const Bits*>(data + at))) first = at;
    }
    return first;
  }
  const uint4 loaded = *reinterpret_cast<const uint4*>(data);
  const auto* bits = reinterpret_cast<const Bits*>(&loaded);
#pragma unroll
  for (int i = 16 / kEach - 1; i >= 0; --i) {
    if (bad(bits[i])) first = i * kEach;
  }
  return first;
}

// Of a block: 0 where a scale is none.
__device__ int first_no_scale(const char* data, BlockScales scales) {
  const auto bad = [&](int offset) {
    return offset >= 0 && (*reinterpret_cast<const uint16_t*>(data + offset) & 0x7C00) == 0x7C00;
  };
  return bad(scales.scale) || bad(scales.min) ? 0 : -1;
}

__global__ void look_kernel(const __grid_constant__ Looks looks) {
  const int which = piece_of(looks.end, blockIdx.x);
  const Look& look = looks.look[which];
  const unsigned begin = which == 0 ? 0 : looks.end[which - 1];
  const int64_t at =
      (static_cast<int64_t>(blockIdx.x - begin) * kThreads + threadIdx.x) * look.each;
  if (at >= look.bytes) return;
  const char* data = look.data + at;
  const int bad =
      look.float_bytes == 4   ? first_no_number<uint32_t>(data, look.bytes - at, look.exponent)
      : look.float_bytes == 2 ? first_no_number<uint16_t>(data, look.bytes - at, look.exponent)
                              : first_no_scale(data, look.scales);
  if (bad < 0) return;
  const int64_t row = (at + bad) / look.row_bytes;
  atomicMin(reinterpret_cast<unsigned long long*>(looks.first),
            static_cast<unsigned long long>(look.host + row * look.row_bytes));
}

Look look_at(const UploadedRows& rows) {
  Look look{rows.data, rows.bytes, rows.row_bytes, rows.host, 16, 0, 0, {}};
  switch (rows.dtype) {
    case DType::kF32:
      look.exponent = 0x7F800000;
      look.float_bytes = 4;
      break;
    case DType::kF16:
      look.exponent = 0x7C00;
      look.float_bytes = 2;
      break;
    case DType::kBF16:
      look.exponent = 0x7F80;
      look.float_bytes = 2;
      break;
    default:
      look.scales = block_scales(rows.dtype);
      look.each = dtype_info(rows.dtype).block_bytes;
  }
  return look;
}

}  // namespace

void load_looking() { load_kernel(look_kernel); }

void look_for_not_finite(const UploadedRows* rows, size_t count, uint64_t* first, Stream stream) {
  for (size_t begin = 0; begin < count; begin += kMost) {
    Looks looks{};
    looks.first = first;
    unsigned blocks = 0;
    for (size_t i = 0; i < kMost; ++i) {
      if (begin + i < count) {
        const Look look = looks.look[i] = look_at(rows[begin + i]);
        const int64_t share = static_cast<int64_t>(kThreads) * look.each;
        blocks += static_cast<unsigned>((look.bytes + share - 1) / share);
      }
      looks.end[i] = blocks;
    }
    if (blocks > 0) look_kernel<<<blocks, kThreads, 0, stream>>>(looks);
  }
}

}  // namespace tinyvllm::ops::cuda
