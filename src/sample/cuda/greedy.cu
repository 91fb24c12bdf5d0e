#include <cmath>

#include "sample/cuda/greedy_kernel.h"

namespace tinyvllm::cuda_sampler {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarp = 32;
constexpr int32_t kNotNumbers = -1;

struct Best {
  float value;
  int32_t id;
  bool nan;
};

__device__ Best better(const Best& a, const Best& b) {
  const bool first = a.value > b.value || (a.value == b.value && a.id < b.id);
  Best best = first ? a : b;
  best.nan = a.nan || b.nan;
  return best;
}

__device__ Best over_warp(Best best) {
  for (int i = kWarp / 2; i > 0; i /= 2) {
    const Best other{__shfl_xor_sync(~0u, best.value, i), __shfl_xor_sync(~0u, best.id, i),
                     __shfl_xor_sync(~0u, static_cast<int>(best.nan), i) != 0};
    best = better(best, other);
  }
  return best;
}

__global__ void greedy_kernel(const float* logits, int64_t stride, int64_t width,
                              const int32_t* rows, int32_t* tokens) {
  __shared__ Best parts[kThreads / kWarp];
  const float* row = logits + (rows != nullptr ? rows[blockIdx.x] : blockIdx.x) * stride;
  Best best{-INFINITY, INT32_MAX, false};
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    const float v = row[i];
    best = better(best, Best{v, static_cast<int32_t>(i), isnan(v)});
  }
  best = over_warp(best);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  best = over_warp(parts[threadIdx.x]);
  if (threadIdx.x == 0)
    tokens[blockIdx.x] = best.nan || !isfinite(best.value) ? kNotNumbers : best.id;
}

}  // namespace

void launch_greedy(const float* logits, int64_t stride, int64_t width, const int32_t* rows,
                   int64_t count, int32_t* tokens, CUstream_st* stream) {
  if (count == 0) return;
  greedy_kernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(logits, stride, width, rows,
                                                                       tokens);
}

}  // namespace tinyvllm::cuda_sampler
