// A block per row; the row is read twice, the second time from a cache.
#include "ops/cuda/common.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 256;

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

__device__ Moments moments(const NormArgs& norm, const Rows& x, int64_t row, int64_t from,
                           int width) {
  float sum = 0;
  if (norm.subtract_mean) {
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += load(x, row, from + i);
    sum = block_sum(sum);
  }
  const float mean = sum / width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float v = load(x, row, from + i) - mean;
    squares += v * v;
  }
  return {mean, rsqrtf(block_sum(squares) / width + norm.eps)};
}

__device__ float normed(const NormArgs& norm, const Moments& m, float v, int i) {
  const float y = (v - m.mean) * m.scale * norm.weight[i];
  return norm.bias != nullptr ? y + norm.bias[i] : y;
}

// Without weights a plain copy into y's type.
__global__ void norm_kernel(NormArgs norm, Rows x, Rows y, bool add) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = blockIdx.x;
  const int width = static_cast<int>(x.cols);
  const bool plain = norm.weight == nullptr;
  const Moments m = plain ? Moments{} : moments(norm, x, row, 0, width);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float v = load(x, row, i);
    const float result = plain ? v : normed(norm, m, v, i);
    store(y, row, i, add ? load(y, row, i) + result : result);
  }
}

__global__ void head_kernel(NormArgs norm, int width, Rows x) {
  let_next_begin();
  wait_for_previous();
  const int64_t row = blockIdx.x;
  const int64_t from = static_cast<int64_t>(blockIdx.y) * width;
  const Moments m = moments(norm, x, row, from, width);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    store(x, row, from + i, normed(norm, m, load(x, row, from + i), i));
  }
}

}  // namespace

void norm_rows(const NormArgs& norm, const Rows& x, const Rows& y, bool add, Stream stream) {
  if (x.rows == 0) return;
  launch_behind(norm_kernel, static_cast<unsigned>(x.rows), kThreads, 0, stream, norm, x, y, add);
}

void norm_heads(const NormArgs& norm, int width, const Rows& x, Stream stream) {
  if (x.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(x.rows), static_cast<unsigned>(x.cols / width));
  launch_behind(head_kernel, grid, width <= 128 ? 64 : 128, 0, stream, norm, width, x);
}

}  // namespace tinyvllm::ops::cuda
