// block/sample_row.h on a card: a block of threads to each row.
#include "sample/block/sample_row.h"
#include "sample/cuda/sample_rows_kernel.h"

namespace tinyvllm::cuda_sampler {
namespace {

using block_sampler::Best;
using block_sampler::DeviceRow;
using block_sampler::Scores;
using block_sampler::Shared;

constexpr int kThreads = 1024;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = ~0u;

// A part of a result from each warp.
union Parts {
  unsigned long long sums[kWarps];
  struct {
    float value[kWarps];
    int32_t id[kWarps];
    int32_t nan[kWarps];
  } best;
};

class CudaBlock {
 public:
  __device__ explicit CudaBlock(Parts& parts) : parts_(parts) {}

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return kThreads; }
  __device__ int lane() const { return thread() % kWarp; }
  __device__ int lanes() const { return kWarp; }
  __device__ int warp() const { return thread() / kWarp; }
  __device__ int warps() const { return kWarps; }

  __device__ void sync() const { __syncthreads(); }
  __device__ uint32_t add(uint32_t* at, uint32_t n) const { return atomicAdd(at, n); }
  __device__ void set_bits(uint32_t* at, uint32_t bits) const { atomicOr(at, bits); }

  __device__ uint64_t warp_sum(uint64_t n) const {
    unsigned long long sum = n;
    for (int i = kWarp / 2; i > 0; i /= 2) sum += __shfl_xor_sync(kAllLanes, sum, i);
    return sum;
  }

  __device__ uint64_t sum_before(uint64_t n, uint64_t* total) {
    unsigned long long upto = n;
    for (int i = 1; i < kWarp; i *= 2) {
      const unsigned long long below = __shfl_up_sync(kAllLanes, upto, i);
      if (lane() >= i) upto += below;
    }
    __syncthreads();
    if (lane() == kWarp - 1) parts_.sums[warp()] = upto;
    __syncthreads();
    uint64_t before = upto - n;
    uint64_t all = 0;
    for (int i = 0; i < kWarps; ++i) {
      if (i < warp()) before += parts_.sums[i];
      all += parts_.sums[i];
    }
    *total = all;
    return before;
  }

  __device__ Best best(Best best) {
    for (int i = kWarp / 2; i > 0; i /= 2) {
      Best other;
      other.value = __shfl_xor_sync(kAllLanes, best.value, i);
      other.id = __shfl_xor_sync(kAllLanes, best.id, i);
      other.nan = __shfl_xor_sync(kAllLanes, static_cast<int>(best.nan), i) != 0;
      best.meet(other);
    }
    __syncthreads();
    if (lane() == 0) {
      parts_.best.value[warp()] = best.value;
      parts_.best.id[warp()] = best.id;
      parts_.best.nan[warp()] = best.nan ? 1 : 0;
    }
    __syncthreads();
    for (int i = 0; i < kWarps; ++i) {
      Best other;
      other.value = parts_.best.value[i];
      other.id = parts_.best.id[i];
      other.nan = parts_.best.nan[i] != 0;
      best.meet(other);
    }
    return best;
  }

 private:
  Parts& parts_;
};

// rows: [gridDim.x], their words behind them.
__global__ void __launch_bounds__(kThreads)
    sample_rows_kernel(const float* logits, int64_t stride, int32_t width, const DeviceRow* rows,
                       const int32_t* previous, uint32_t* scratch, int32_t* tokens,
                       Scores* scores) {
  __shared__ Shared shared;
  __shared__ Parts parts;
  CudaBlock block(parts);
  const DeviceRow row = rows[blockIdx.x];
  const auto* words = reinterpret_cast<const int32_t*>(rows + gridDim.x);
  uint32_t* changed = scratch + (row.edited >= 0 ? row.edited : 0) * static_cast<int64_t>(width);
  const int32_t token = block_sampler::sample_row(block, shared, row, words, previous,
                                                  logits + row.logit_row * stride, width, changed,
                                                  scores + (scores != nullptr ? blockIdx.x : 0));
  if (threadIdx.x == 0) tokens[blockIdx.x] = token;
}

}  // namespace

void launch_sample_rows(const float* logits, int64_t stride, int64_t width, const DeviceRow* rows,
                        int64_t count, const int32_t* previous, uint32_t* scratch, int32_t* tokens,
                        Scores* scores, CUstream_st* stream) {
  if (count == 0) return;
  sample_rows_kernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
      logits, stride, static_cast<int32_t>(width), rows, previous, scratch, tokens, scores);
}

}  // namespace tinyvllm::cuda_sampler
