// One query token at a time: what decoding does, and what every batch does when results must not
// depend on company. The cache is cut at fixed positions into splits, one block each, for all query
// heads that share a KV head: keys are scored, V is added up, and a second kernel joins the splits
// in ascending order. A cache of bytes has a kernel of its own for its splits: by_bytes.cu.
#include <algorithm>

#include "ops/cuda/attention/by_token.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kMostGroups = 16;  // shares of the tokens whose values are added side by side
// Scratch for the splits of so many tokens at a time; more tokens take several turns.
constexpr int64_t kScratchBytes = int64_t{64} << 20;

__host__ __device__ constexpr int padded_dim(int dim) { return (dim + 7) / 8 * 8; }

// Shares of V that fit beside each other: a thread has 8 columns of one.
__host__ __device__ constexpr int groups_of(int pitch) {
  const int groups = kSplitThreads / (pitch / 8);
  return groups < kMostGroups ? groups : kMostGroups;
}

// 8 elements of a head that is `dim` wide, zeros past its end.
template <class T>
__device__ void load8(const T* row, int at, int dim, float (&v)[8]) {
  if (sizeof(T) == 2 && dim % 8 == 0) {
    const uint4 eight = *reinterpret_cast<const uint4*>(row + at);
    const auto* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = __half22float2(pairs[i]);
      v[2 * i] = f.x;
      v[2 * i + 1] = f.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = at + i < dim ? kv_float(row[at + i]) : 0.f;
  }
}

// scores[h][i] = q_h · k_i. Two threads a key, each every other 8 columns.
template <class T>
__device__ void score(const AttentionArgs& a, const SplitJob& job, const int32_t* blocks,
                      const float* queries, int pitch, float* scores) {
  const int i = threadIdx.x / 2;
  float dot[kMostHeads] = {};
  if (i >= job.from && i < job.to) {
    const int offset = (job.split * kSplitTokens + i) % a.kv.block_size;
    const T* key = k_at<T>(a.kv, blocks[i], job.kv_head, offset);
    for (int d = threadIdx.x % 2 * 8; d < a.kv.k_dim; d += 16) {
      float kf[8];
      load8(key, d, a.kv.k_dim, kf);
#pragma unroll
      for (int h = 0; h < kMostHeads; ++h) {
        if (h >= job.heads) continue;
        const auto* q = reinterpret_cast<const float4*>(queries + h * pitch + d);
        const float4 q0 = q[0];
        const float4 q1 = q[1];
        const float qf[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
#pragma unroll
        for (int e = 0; e < 8; ++e) dot[h] = fmaf(kf[e], qf[e], dot[h]);
      }
    }
  }
#pragma unroll
  for (int h = 0; h < kMostHeads; ++h) {
    const float s = dot[h] + __shfl_xor_sync(~0u, dot[h], 1);
    if (threadIdx.x % 2 == 0 && h < job.heads) {
      scores[h * kSplitTokens + i] = capped(a, s);
    }
  }
}

// sums[h][d] = Σ scores[h][i] · v_i[d]. A thread has 8 columns and every n-th token; the shares are
// added in ascending order.
template <class T>
__device__ void add_values(const AttentionArgs& a, const SplitJob& job, const int32_t* blocks,
                           const float* scores, int pitch, float* shares) {
  const int chunks = (a.kv.v_dim + 7) / 8;
  const int groups = groups_of(pitch);
  const int group = threadIdx.x / chunks;
  const int d = threadIdx.x % chunks * 8;
  if (group < groups) {
    float sums[kMostHeads][8] = {};
    for (int i = job.from + group; i < job.to; i += groups) {
      const int offset = (job.split * kSplitTokens + i) % a.kv.block_size;
      float vf[8];
      load8(v_at<T>(a.kv, blocks[i], job.kv_head, offset), d, a.kv.v_dim, vf);
#pragma unroll
      for (int h = 0; h < kMostHeads; ++h) {
        if (h >= job.heads) continue;
        const float s = scores[h * kSplitTokens + i];
#pragma unroll
        for (int e = 0; e < 8; ++e) sums[h][e] = fmaf(s, vf[e], sums[h][e]);
      }
    }
#pragma unroll
    for (int h = 0; h < kMostHeads; ++h) {
      if (h >= job.heads) continue;
#pragma unroll
      for (int e = 0; e < 8; ++e) shares[(group * kMostHeads + h) * pitch + d + e] = sums[h][e];
    }
  }
  __syncthreads();
  for (int at = threadIdx.x; at < job.heads * a.kv.v_dim; at += kSplitThreads) {
    const int h = at / a.kv.v_dim;
    const int column = at % a.kv.v_dim;
    float sum = 0;
    for (int g = 0; g < groups; ++g) sum += shares[(g * kMostHeads + h) * pitch + column];
    shares[h * pitch + column] = sum;  // of group 0, which nobody else reads
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kSplitThreads)
    split_kernel(AttentionArgs a, Rows q, Rows y, float* partial, int splits) {
  extern __shared__ float4 memory[];
  __shared__ int32_t blocks[kSplitTokens];
  __shared__ Partial totals[kMostHeads];
  SplitJob job = find_job(a);
  if (job.from >= job.to) return;
  find_heads(a, job);
  const int pitch = padded_dim(max(a.kv.k_dim, a.kv.v_dim));
  auto* scores = reinterpret_cast<float*>(memory);      // [heads, kSplitTokens]
  float* queries = scores + kMostHeads * kSplitTokens;  // [heads, pitch], later shares of V
  find_blocks(a, job, blocks);
  for (int at = threadIdx.x; at < job.heads * pitch; at += kSplitThreads) {
    const int h = at / pitch;
    const int d = at % pitch;
    const int64_t column = static_cast<int64_t>(job.first_head + h) * a.kv.k_dim + d;
    queries[at] = d < a.kv.k_dim ? load(q, job.token, column) * a.scale : 0.f;
  }
  __syncthreads();
  score<T>(a, job, blocks, queries, pitch, scores);
  __syncthreads();
  weigh(job, scores, kSplitTokens, totals,
        [&](int h, int i, float weight) { scores[h * kSplitTokens + i] = weight; });
  __syncthreads();
  add_values<T>(a, job, blocks, scores, pitch, queries);
  hand_over(a, job, y, partial, splits, totals,
            [&](int h, int d) { return queries[h * pitch + d]; });
}

__global__ void join_kernel(AttentionArgs a, Rows y, float* partial, int splits) {
  let_next_begin();
  wait_for_previous();
  const int64_t token = blockIdx.x;
  const int head = blockIdx.y;
  const int position = a.positions[token];
  const int first = first_seen(a, position) / kSplitTokens;
  const int last = position / kSplitTokens;
  if (first == last) return;  // written already
  float most = -INFINITY;
  for (int s = first; s <= last; ++s) {
    most = fmaxf(most, partial_at(a, partial, token, head, s, splits)[0]);
  }
  for (int d = threadIdx.x; d < a.kv.v_dim; d += blockDim.x) {
    float value = 0;
    float sum = 0;
    for (int s = first; s <= last; ++s) {
      const float* part = partial_at(a, partial, token, head, s, splits);
      const float weight = __expf(part[0] - most);
      sum = fmaf(weight, part[1], sum);
      value = fmaf(weight, part[2 + d], value);
    }
    store(y, token, static_cast<int64_t>(head) * a.kv.v_dim + d, value / sum);
  }
}

int splits_of(const AttentionArgs& a) {
  const int tokens = a.max_blocks * a.kv.block_size;
  return (tokens + kSplitTokens - 1) / kSplitTokens;
}
int64_t token_bytes(const AttentionArgs& a) {
  return a.heads * splits_of(a) * (a.kv.v_dim + 2) * static_cast<int64_t>(sizeof(float));
}
int64_t tokens_at_a_time(const AttentionArgs& a) {
  constexpr int64_t kMost = 65535;  // of a grid's third dimension
  return std::clamp<int64_t>(kScratchBytes / token_bytes(a), 1, kMost);
}

}  // namespace

// No less than any step needs that has fewer tokens or a shorter cache.
int64_t split_bytes(const AttentionArgs& a, int64_t tokens) {
  if (splits_of(a) <= 1) return 0;
  return std::min(tokens * token_bytes(a), std::max(kScratchBytes, token_bytes(a)));
}

void attention_by_token(const AttentionArgs& a, const Rows& q, const Rows& y, void* partial,
                        Stream stream) {
  if (q.rows == 0) return;
  const int splits = splits_of(a);
  const int pitch = padded_dim(std::max(a.kv.k_dim, a.kv.v_dim));
  const size_t shared =
      sizeof(float) * kMostHeads * static_cast<size_t>(kSplitTokens + groups_of(pitch) * pitch);
  auto* sums = static_cast<float*>(partial);
  const int64_t turn = tokens_at_a_time(a);
  for (int64_t begin = 0; begin < q.rows; begin += turn) {
    AttentionArgs part = a;
    part.positions += begin;
    part.token_sequence += begin;
    const auto from = [&](const Rows& x) {
      Rows r = x;
      r.data = static_cast<char*>(x.data) + begin * x.stride * (x.is_half ? 2 : 4);
      r.rows = std::min(turn, x.rows - begin);
      return r;
    };
    const Rows qs = from(q);
    const Rows ys = from(y);
    const dim3 grid(static_cast<unsigned>(splits),
                    static_cast<unsigned>(a.kv.kv_heads * parts_of(a)),
                    static_cast<unsigned>(qs.rows));
    const auto run = [&](auto kernel) {
      launch_behind(kernel, grid, kSplitThreads, shared, stream, part, qs, ys, sums, splits);
    };
    switch (a.kv.dtype) {
      case DType::kI8:
        attend_bytes(part, grid, qs, ys, sums, splits, stream);
        break;
      case DType::kF16:
        run(split_kernel<__half>);
        break;
      default:
        run(split_kernel<float>);
    }
    if (splits <= 1) continue;
    const dim3 rows(static_cast<unsigned>(qs.rows), static_cast<unsigned>(a.heads));
    launch_behind(join_kernel, rows, a.kv.v_dim <= 64 ? 64 : 128, 0, stream, part, ys, sums,
                  splits);
  }
}

}  // namespace tinyvllm::ops::cuda
