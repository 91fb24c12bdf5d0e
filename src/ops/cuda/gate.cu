#include "ops/cuda/common.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {
namespace {

// Eight columns a thread, where rows are halves and aligned for that.
__global__ void gate8_kernel(Epilogue gate, Rows x, Rows y) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = blockIdx.x;
  const int64_t i = 8 * (blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x);
  if (i >= y.cols) return;
  const auto* from = static_cast<const __half*>(x.data) + row * x.stride + i;
  const uint4 g = *reinterpret_cast<const uint4*>(from);
  const uint4 u = *reinterpret_cast<const uint4*>(from + y.cols);
  const auto* gs = reinterpret_cast<const __half*>(&g);
  const auto* us = reinterpret_cast<const __half*>(&u);
  uint4 result;
  auto* to = reinterpret_cast<__half*>(&result);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    to[e] = to_half(gate_of(gate, __half2float(gs[e])) * __half2float(us[e]));
  }
  *reinterpret_cast<uint4*>(static_cast<__half*>(y.data) + row * y.stride + i) = result;
}

__global__ void gate_kernel(Epilogue gate, const float* bias, Rows x, Rows y) {
  const int64_t row = blockIdx.x;
  const int64_t i = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= y.cols) return;
  float g = load(x, row, i);
  float u = load(x, row, y.cols + i);
  if (bias != nullptr) {
    g += bias[i];
    u += bias[y.cols + i];
  }
  store(y, row, i, gate_of(gate, g) * u);
}

__global__ void bias_kernel(const float* bias, Rows x) {
  const int64_t row = blockIdx.x;
  const int64_t i = blockIdx.y * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < x.cols) store(x, row, i, load(x, row, i) + bias[i]);
}

// Rows first: a grid's other dimensions end at 65535.
dim3 grid_for(const Rows& y, int64_t columns) {
  return {static_cast<unsigned>(y.rows), static_cast<unsigned>((y.cols + columns - 1) / columns)};
}

}  // namespace

void gate_rows(Epilogue gate, const float* bias, const Rows& x, const Rows& y, Stream stream) {
  if (y.rows == 0) return;
  const auto by8 = [](const Rows& r) {
    return r.is_half && r.stride % 8 == 0 && reinterpret_cast<uintptr_t>(r.data) % 16 == 0;
  };
  if (bias == nullptr && y.cols % 8 == 0 && by8(x) && by8(y)) {
    launch_behind(gate8_kernel, grid_for(y, 8 * 128), 128, 0, stream, gate, x, y);
  } else {
    gate_kernel<<<grid_for(y, 256), 256, 0, stream>>>(gate, bias, x, y);
  }
}

void add_bias(const float* bias, const Rows& x, Stream stream) {
  if (x.rows > 0) bias_kernel<<<grid_for(x, 256), 256, 0, stream>>>(bias, x);
}

void clear(void* data, size_t bytes, Stream stream) { cudaMemsetAsync(data, 0, bytes, stream); }

void copy(void* to, const void* from, size_t bytes, Stream stream) {
  cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace tinyvllm::ops::cuda
