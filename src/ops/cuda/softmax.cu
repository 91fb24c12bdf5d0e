#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {
namespace {

__global__ void softmax_kernel(Rows x, Rows y) {
  const int64_t row = blockIdx.x;
  float most = -INFINITY;
  for (int64_t i = threadIdx.x; i < x.cols; i += blockDim.x) most = fmaxf(most, load(x, row, i));
  most = block_max(most);
  float sum = 0;
  for (int64_t i = threadIdx.x; i < x.cols; i += blockDim.x) sum += expf(load(x, row, i) - most);
  sum = block_sum(sum);
  for (int64_t i = threadIdx.x; i < x.cols; i += blockDim.x) {
    store(y, row, i, expf(load(x, row, i) - most) / sum);
  }
}

struct Best {
  float value;
  int32_t id;
};
// NaN ranks last, equals by id.
__device__ bool before(const Best& a, const Best& b) {
  if (a.id < 0 || b.id < 0) return b.id < 0 && a.id >= 0;
  const bool a_nan = isnan(a.value);
  const bool b_nan = isnan(b.value);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.value != b.value) return a.value > b.value;
  return a.id < b.id;
}

// k passes, each for the best that comes after the one found last.
__global__ void top_k_kernel(Rows x, int k, int32_t* ids, float* values) {
  __shared__ Best parts[kWarp];
  __shared__ Best last;
  const int64_t row = blockIdx.x;
  const int lane = threadIdx.x % kWarp;
  for (int rank = 0; rank < k; ++rank) {
    Best best{0, -1};
    for (int64_t i = threadIdx.x; i < x.cols; i += blockDim.x) {
      const Best here{load(x, row, i), static_cast<int32_t>(i)};
      if ((rank == 0 || before(last, here)) && before(here, best)) best = here;
    }
    for (int step = 0; step < 2; ++step) {  // over the warp, then over the warps
      for (int i = kWarp / 2; i > 0; i /= 2) {
        const Best other{__shfl_xor_sync(~0u, best.value, i), __shfl_xor_sync(~0u, best.id, i)};
        if (before(other, best)) best = other;
      }
      if (step == 1) break;
      __syncthreads();
      if (lane == 0) parts[threadIdx.x / kWarp] = best;
      __syncthreads();
      best = lane < blockDim.x / kWarp ? parts[lane] : Best{0, -1};
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      last = best;
      ids[row * k + rank] = best.id;
      values[row * k + rank] = best.value;
    }
    __syncthreads();
    if (last.id < 0) {  // the row is shorter than k
      for (int r = rank + 1 + threadIdx.x; r < k; r += blockDim.x) {
        ids[row * k + r] = -1;
        values[row * k + r] = 0;
      }
      return;
    }
  }
}

}  // namespace

void softmax_rows(const Rows& x, const Rows& y, Stream stream) {
  if (x.rows > 0) softmax_kernel<<<static_cast<unsigned>(x.rows), 1024, 0, stream>>>(x, y);
}

void top_k_rows(const Rows& x, int k, int32_t* ids, float* values, Stream stream) {
  if (x.rows == 0 || k == 0) return;
  top_k_kernel<<<static_cast<unsigned>(x.rows), 1024, 0, stream>>>(x, k, ids, values);
}

}  // namespace tinyvllm::ops::cuda
