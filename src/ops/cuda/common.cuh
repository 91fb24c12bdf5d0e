// What kernels share: reading floats and halves alike, sums over a warp and a block.
#pragma once

#include <cuda_fp16.h>

#include "ops/cuda/kernels.h"

namespace tinyvllm::ops::cuda {

constexpr int kWarp = 32;

// The driver loads a kernel when it is first asked for, which takes longer than most of them run.
template <class... Parameters>
void load_kernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, kernel);
}

// Many pieces of work in one launch: the thread blocks of one follow those of the one before. `end`
// is where those of each end, or of the last; their number is a power of two.
template <int kCount>
__device__ int piece_of(const unsigned (&end)[kCount], unsigned block) {
  int which = 0;
  for (int step = kCount / 2; step > 0; step /= 2) {
    if (block >= end[which + step - 1]) which += step;
  }
  return which;
}

// Halves end at 65504: what is larger stays the largest, not infinity. What is no number stays so.
__device__ inline __half to_half(float v) {
  const __half most = __ushort_as_half(0x7BFF);
  return __hmin_nan(__hmax_nan(__float2half_rn(v), __hneg(most)), most);
}
__device__ inline float load(const Rows& x, int64_t row, int64_t col) {
  const int64_t at = row * x.stride + col;
  return x.is_half ? __half2float(static_cast<const __half*>(x.data)[at])
                   : static_cast<const float*>(x.data)[at];
}
__device__ inline void store(const Rows& y, int64_t row, int64_t col, float v) {
  const int64_t at = row * y.stride + col;
  if (y.is_half) {
    static_cast<__half*>(y.data)[at] = to_half(v);
  } else {
    static_cast<float*>(y.data)[at] = v;
  }
}

__device__ inline float warp_sum(float v) {
  for (int i = kWarp / 2; i > 0; i /= 2) v += __shfl_xor_sync(~0u, v, i);
  return v;
}
__device__ inline float warp_max(float v) {
  for (int i = kWarp / 2; i > 0; i /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, i));
  return v;
}

// Over all threads of a block, in an order that depends on nothing but its size; everyone gets it.
template <class Reduce>
__device__ float block_reduce(float v, float empty, Reduce reduce) {
  __shared__ float parts[kWarp];
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  v = reduce(v);
  __syncthreads();  // parts may still be read from the call before
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + kWarp - 1) / kWarp ? parts[lane] : empty;
  return reduce(v);
}
__device__ inline float block_sum(float v) {
  return block_reduce(v, 0.f, [](float x) { return warp_sum(x); });
}
__device__ inline float block_max(float v) {
  return block_reduce(v, -INFINITY, [](float x) { return warp_max(x); });
}

__device__ inline float silu(float x) { return x / (1.f + __expf(-x)); }
__device__ inline float gelu_tanh(float x) {
  return 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
__device__ inline float gate_of(Epilogue e, float x) {
  return e == Epilogue::kSiluGate ? silu(x) : gelu_tanh(x);
}

}  // namespace tinyvllm::ops::cuda
