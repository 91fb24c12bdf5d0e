// Rows as files have them, looked at on the card: whether they are numbers. Runs behind a copy over
// the bus that takes fifty times as long.
#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 256;

__device__ void found(const UploadedRows& rows, int64_t at) {
  const int64_t row = at / rows.row_bytes;
  atomicMin(reinterpret_cast<unsigned long long*>(rows.first_not_finite),
            static_cast<unsigned long long>(rows.host + row * rows.row_bytes));
}

// Sixteen bytes a thread, in one load but at the end. An exponent of all ones is a NaN or an
// infinity.
template <class Bits>
__global__ void floats_kernel(UploadedRows rows, Bits exponent) {
  constexpr int64_t kEach = sizeof(Bits);
  const int64_t begin = (blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x) * 16;
  const auto look = [&](Bits bits, int64_t at) {
    if ((bits & exponent) == exponent) found(rows, at);
  };
  if (begin + 16 > rows.bytes) {
    for (int64_t at = begin; at < rows.bytes; at += kEach) {
      look(*reinterpret_cast<const Bits*>(rows.data + at), at);
    }
    return;
  }
  const uint4 loaded = *reinterpret_cast<const uint4*>(rows.data + begin);
  const auto* bits = reinterpret_cast<const Bits*>(&loaded);
#pragma unroll
  for (int64_t i = 0; i < 16 / kEach; ++i) look(bits[i], begin + i * kEach);
}

// A block a thread.
__global__ void blocks_kernel(UploadedRows rows, BlockScales scales, int block_bytes) {
  const int64_t block = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t at = block * block_bytes;
  if (at >= rows.bytes) return;
  const auto bad = [&](int offset) {
    if (offset < 0) return false;
    return (*reinterpret_cast<const uint16_t*>(rows.data + at + offset) & 0x7C00) == 0x7C00;
  };
  if (bad(scales.scale) || bad(scales.min)) found(rows, at);
}

unsigned grid_for(int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

}  // namespace

void load_looking() {
  load_kernel(floats_kernel<uint32_t>);
  load_kernel(floats_kernel<uint16_t>);
  load_kernel(blocks_kernel);
}

void look_for_not_finite(DType dtype, const UploadedRows& rows, Stream stream) {
  const unsigned floats = grid_for((rows.bytes + 15) / 16);
  if (dtype == DType::kF32) {
    floats_kernel<uint32_t><<<floats, kThreads, 0, stream>>>(rows, 0x7F800000);
  } else if (dtype == DType::kF16) {
    floats_kernel<uint16_t><<<floats, kThreads, 0, stream>>>(rows, 0x7C00);
  } else if (dtype == DType::kBF16) {
    floats_kernel<uint16_t><<<floats, kThreads, 0, stream>>>(rows, 0x7F80);
  } else if (const BlockScales scales = block_scales(dtype); scales.scale >= 0) {
    const int bytes = dtype_info(dtype).block_bytes;
    blocks_kernel<<<grid_for(rows.bytes / bytes), kThreads, 0, stream>>>(rows, scales, bytes);
  }
}

}  // namespace tinyvllm::ops::cuda
