#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {
namespace {

__global__ void gate_kernel(Epilogue gate, const float* bias, Rows x, Rows y) {
  const int64_t row = blockIdx.y;
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
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
  const int64_t row = blockIdx.y;
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < x.cols) store(x, row, i, load(x, row, i) + bias[i]);
}

dim3 grid_for(const Rows& y) {
  return {static_cast<unsigned>((y.cols + 255) / 256), static_cast<unsigned>(y.rows)};
}

}  // namespace

void gate_rows(Epilogue gate, const float* bias, const Rows& x, const Rows& y, Stream stream) {
  if (y.rows > 0) gate_kernel<<<grid_for(y), 256, 0, stream>>>(gate, bias, x, y);
}

void add_bias(const float* bias, const Rows& x, Stream stream) {
  if (x.rows > 0) bias_kernel<<<grid_for(x), 256, 0, stream>>>(bias, x);
}

void clear(void* data, size_t bytes, Stream stream) { cudaMemsetAsync(data, 0, bytes, stream); }

void copy(void* to, const void* from, size_t bytes, Stream stream) {
  cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace tinyvllm::ops::cuda
