// The splits of a cache of bytes, on the tensor cores: bytes become halves, exactly, once for all
// query heads, and their scales go to the scores and to the weights. A warp has 16 tokens. All that
// it reads of the cache is under way before the first product.
//
// Both products have the cache on the left, 16 rows of it, and 8 query heads on the right. What the
// tensor cores call columns of a row, or rows, is up to us as long as both sides agree: so a lane
// multiplies the bytes that lie side by side for it.
#include <algorithm>

#include "ops/cuda/attention/by_token.cuh"
#include "ops/cuda/attention/mma.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kWarps = kSplitThreads / kWarp;
constexpr int kTokens = kSplitTokens / kWarps;  // of a warp
constexpr int kChunk = 64;                      // columns that a warp reads at a time
static_assert(kTokens == 16 && kMostHeads == 8, "a product's rows and columns");

template <int kFirst>
__device__ uint32_t halves_at(uint32_t bytes) {
  return as_register(__hsub2(offset_halves<kFirst>(bytes), __float2half2_rn(kByteOffset)));
}

// Bytes [at, at + sizeof(Vector)) of a row, zeros past its end. Whole: rows are multiples of 16.
template <class Vector, bool kWhole>
__device__ Vector load_bytes(const int8_t* row, int at, int dim) {
  Vector v{};
  if constexpr (kWhole) {
    if (at < dim) v = *reinterpret_cast<const Vector*>(row + at);
  } else {
    auto* bytes = reinterpret_cast<int8_t*>(&v);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof v); ++i) {
      if (at + i < dim) bytes[i] = row[at + i];
    }
  }
  return v;
}

// What a lane has of its warp's tokens. Of K: tokens lane/4 and lane/4 + 8, and in each chunk 16
// columns from 16 (lane % 4) on. Of V: four tokens from 4 (lane % 4) on, 8 columns from 8 (lane/4).
template <int kChunks>
struct Mine {
  uint4 k[2][kChunks] = {};
  uint2 v[4][kChunks] = {};
  float k_scales[2] = {};
  float v_scale = 0;  // of token `lane`, if there are so many
};

template <int kChunks, bool kWhole>
__device__ Mine<kChunks> load_mine(const AttentionArgs& a, const SplitJob& job,
                                   const int32_t* blocks) {
  const int lane = threadIdx.x % kWarp;
  const int first = threadIdx.x / kWarp * kTokens;
  const auto seen = [&](int i) { return i >= job.from && i < job.to; };
  const auto offset = [&](int i) { return (job.split * kSplitTokens + i) % a.kv.block_size; };
  Mine<kChunks> mine;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = first + lane / 4 + 8 * r;
    if (!seen(i)) continue;
    const int8_t* row = k_at<int8_t>(a.kv, blocks[i], job.kv_head, offset(i));
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      mine.k[r][c] = load_bytes<uint4, kWhole>(row, c * kChunk + lane % 4 * 16, a.kv.k_dim);
    }
    mine.k_scales[r] = *k_scale_at(a.kv, blocks[i], job.kv_head, offset(i));
  }
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const int i = first + lane % 4 * 4 + t;
    if (!seen(i)) continue;
    const int8_t* row = v_at<int8_t>(a.kv, blocks[i], job.kv_head, offset(i));
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      mine.v[t][c] = load_bytes<uint2, kWhole>(row, c * kChunk + lane / 4 * 8, a.kv.v_dim);
    }
  }
  const int i = first + lane;
  if (lane < kTokens && seen(i)) {
    mine.v_scale = *v_scale_at(a.kv, blocks[i], job.kv_head, offset(i));
  }
  return mine;
}

template <int kChunks>
struct Shared {
  static constexpr int kDim = kChunks * kChunk;
  static constexpr int kPitch = kSplitTokens + 4;
  __half queries[kMostHeads][kDim + 8];
  __half weights[kMostHeads][kSplitTokens + 8];  // times the scales of V
  float sums[kWarps][kMostHeads][kDim + 4];
  float scores[kMostHeads][kPitch];
  float v_scales[kSplitTokens];
  int32_t blocks[kSplitTokens];
  Partial totals[kMostHeads];
};

// scores[h][i] = q_h · k_i: tokens are rows, heads are columns.
template <int kChunks>
__device__ void score(const AttentionArgs& a, const Mine<kChunks>& mine, Shared<kChunks>& shared) {
  const int lane = threadIdx.x % kWarp;
  float dots[4] = {};
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const auto* low = reinterpret_cast<const uint32_t*>(&mine.k[0][c]);
    const auto* high = reinterpret_cast<const uint32_t*>(&mine.k[1][c]);
    const auto* q =
        reinterpret_cast<const uint4*>(&shared.queries[lane / 4][c * kChunk + lane % 4 * 16]);
    const uint4 both[2] = {q[0], q[1]};
    const auto* pairs = reinterpret_cast<const uint32_t*>(both);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const uint32_t keys[4] = {halves_at<0>(low[w]), halves_at<0>(high[w]), halves_at<2>(low[w]),
                                halves_at<2>(high[w])};
      mma(dots, keys, pairs[2 * w], pairs[2 * w + 1]);
    }
  }
  const int token = threadIdx.x / kWarp * kTokens + lane / 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    shared.scores[lane % 4 * 2 + i % 2][token + i / 2 * 8] =
        capped(a, dots[i] * (mine.k_scales[i / 2] * a.scale));
  }
}

// sums[warp][h][d] = Σ weights[h][i] · v_i[d] over the warp's tokens: columns of V are rows here.
template <int kChunks>
__device__ void add_values(const Mine<kChunks>& mine, Shared<kChunks>& shared) {
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const uint2 weights =
      *reinterpret_cast<const uint2*>(&shared.weights[lane / 4][warp * kTokens + lane % 4 * 4]);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    float sums[4][4] = {};
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      uint32_t four[4];  // columns of each of four tokens
#pragma unroll
      for (int t = 0; t < 4; ++t) four[t] = w == 0 ? mine.v[t][c].x : mine.v[t][c].y;
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // two columns, of two tokens at a time
        const uint32_t first = __byte_perm(four[0], four[1], i == 0 ? 0x5140 : 0x7362);
        const uint32_t second = __byte_perm(four[2], four[3], i == 0 ? 0x5140 : 0x7362);
        const uint32_t values[4] = {halves_at<0>(first), halves_at<2>(first), halves_at<0>(second),
                                    halves_at<2>(second)};
        mma(sums[2 * w + i], values, weights.x, weights.y);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      auto* to = reinterpret_cast<float4*>(
          &shared.sums[warp][lane % 4 * 2 + h][c * kChunk + lane / 4 * 8]);
      to[0] = {sums[0][h], sums[0][2 + h], sums[1][h], sums[1][2 + h]};
      to[1] = {sums[2][h], sums[2][2 + h], sums[3][h], sums[3][2 + h]};
    }
  }
}

template <int kChunks, bool kWhole>
__global__ void __launch_bounds__(kSplitThreads)
    bytes_kernel(AttentionArgs a, Rows q, Rows y, float* partial, int splits) {
  using S = Shared<kChunks>;
  __shared__ __align__(16) unsigned char memory[sizeof(S)];
  S& shared = *reinterpret_cast<S*>(memory);
  SplitJob job = find_job(a);
  if (job.from >= job.to) return;
  find_heads(a, job);
  find_blocks(a, job, shared.blocks);
  for (int at = threadIdx.x; at < kMostHeads * S::kDim; at += kSplitThreads) {
    const int h = at / S::kDim;
    const int d = at % S::kDim;
    const int64_t column = static_cast<int64_t>(job.first_head + h) * a.kv.k_dim + d;
    shared.queries[h][d] =
        h < job.heads && d < a.kv.k_dim ? to_half(load(q, job.token, column)) : __half(0);
  }
  // Heads and tokens that are not there weigh nothing.
  for (int at = threadIdx.x; at < kMostHeads * kSplitTokens; at += kSplitThreads) {
    shared.weights[at / kSplitTokens][at % kSplitTokens] = __half(0);
  }
  __syncthreads();
  const Mine<kChunks> mine = load_mine<kChunks, kWhole>(a, job, shared.blocks);
  score(a, mine, shared);
  const int lane = threadIdx.x % kWarp;
  if (lane < kTokens) shared.v_scales[threadIdx.x / kWarp * kTokens + lane] = mine.v_scale;
  __syncthreads();

  // Weights are halves, so the scales of V go in as shares of the largest.
  const float largest = warp_max(fmaxf(shared.v_scales[lane], shared.v_scales[kWarp + lane]));
  const float inverse = largest > 0 ? 1 / largest : 0.f;
  weigh(job, shared.scores[0], S::kPitch, shared.totals, [&](int h, int i, float weight) {
    shared.weights[h][i] = __float2half_rn(weight * (shared.v_scales[i] * inverse));
  });
  __syncthreads();
  add_values(mine, shared);
  __syncthreads();
  hand_over(a, job, y, partial, splits, shared.totals, [&](int h, int d) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += shared.sums[w][h][d];
    return sum * largest;
  });
}

}  // namespace

void attend_bytes(const AttentionArgs& a, dim3 grid, const Rows& q, const Rows& y, float* partial,
                  int splits, Stream stream) {
  const bool whole = a.kv.k_dim % 16 == 0 && a.kv.v_dim % 16 == 0;
  const int dim = std::max(a.kv.k_dim, a.kv.v_dim);
  const auto run = [&](auto kernel, auto kernel_of_whole) {
    launch_behind(whole ? kernel_of_whole : kernel, grid, kSplitThreads, 0, stream, a, q, y,
                  partial, splits);
  };
  if (dim <= 64) return run(bytes_kernel<1, false>, bytes_kernel<1, true>);
  if (dim <= 128) return run(bytes_kernel<2, false>, bytes_kernel<2, true>);
  run(bytes_kernel<4, false>, bytes_kernel<4, true>);
}

}  // namespace tinyvllm::ops::cuda
