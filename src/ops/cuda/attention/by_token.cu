// One query token at a time: what decoding does, and what every batch does when results must not
// depend on company. The cache is cut at fixed positions into splits, one block each, for all query
// heads that share a KV head: keys are scored, V is added up, and a second kernel joins the splits
// in ascending order.
#include "ops/cuda/kv_address.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMostHeads = 8;  // query heads that one block serves

struct Partial {  // of one (token, head, split): followed by v_dim sums
  float max;
  float sum;
};

__device__ float* partial_at(const AttentionArgs& a, float* partial, int64_t token, int head,
                             int split, int splits) {
  const int64_t index = (token * a.heads + head) * splits + split;
  return partial + index * (a.kv.v_dim + 2);
}

__device__ int first_seen(const AttentionArgs& a, int position) {
  return a.kv.window > 0 ? max(0, position + 1 - a.kv.window) : 0;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    split_kernel(AttentionArgs a, Rows q, Rows y, float* partial, int splits) {
  extern __shared__ float shared[];
  const int split = blockIdx.x;
  const int64_t token = blockIdx.z;
  const int position = a.positions[token];
  const int begin = max(split * kSplitTokens, first_seen(a, position));
  const int end = min((split + 1) * kSplitTokens, position + 1);
  if (begin >= end) return;
  const int group = a.heads / a.kv.kv_heads;
  const int parts = (group + kMostHeads - 1) / kMostHeads;
  const int kv_head = blockIdx.y / parts;
  const int first_head = kv_head * group + blockIdx.y % parts * kMostHeads;
  const int heads = min(kMostHeads, (kv_head + 1) * group - first_head);
  const int32_t* table =
      a.block_table + static_cast<int64_t>(a.token_sequence[token]) * a.max_blocks;

  float* queries = shared;                            // [heads, k_dim]
  float* scores = queries + kMostHeads * a.kv.k_dim;  // [heads, kSplitTokens]
  for (int i = threadIdx.x; i < heads * a.kv.k_dim; i += kThreads) {
    queries[i] = load(q, token, static_cast<int64_t>(first_head) * a.kv.k_dim + i) * a.scale;
  }
  __syncthreads();

  for (int p = begin + threadIdx.x; p < end; p += kThreads) {
    const T* key = k_at<T>(a.kv, table[p / a.kv.block_size], kv_head, p % a.kv.block_size);
    float dot[kMostHeads] = {};
    if (sizeof(T) == 2 && a.kv.k_dim % 8 == 0) {
      for (int d = 0; d < a.kv.k_dim; d += 8) {
        const uint4 eight = *reinterpret_cast<const uint4*>(key + d);
        const auto* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 kf = __half22float2(pairs[i]);
#pragma unroll
          for (int h = 0; h < kMostHeads; ++h) {
            if (h >= heads) break;
            const float* qh = queries + h * a.kv.k_dim + d + 2 * i;
            dot[h] = fmaf(kf.x, qh[0], dot[h]);
            dot[h] = fmaf(kf.y, qh[1], dot[h]);
          }
        }
      }
    } else {
      for (int d = 0; d < a.kv.k_dim; ++d) {
        const float kf = kv_float(key[d]);
#pragma unroll
        for (int h = 0; h < kMostHeads; ++h) {
          if (h < heads) dot[h] = fmaf(kf, queries[h * a.kv.k_dim + d], dot[h]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < kMostHeads; ++h) {
      if (h >= heads) break;
      const float s = a.soft_cap > 0 ? a.soft_cap * tanhf(dot[h] / a.soft_cap) : dot[h];
      scores[h * kSplitTokens + p - split * kSplitTokens] = s;
    }
  }
  __syncthreads();

  // Splits but the first of a sequence's window begin at a border, so that sums always run over the
  // same tokens in the same order.
  const int from = begin - split * kSplitTokens;
  const int to = end - split * kSplitTokens;
  __shared__ Partial totals[kMostHeads];
  for (int h = threadIdx.x / kWarp; h < heads; h += kThreads / kWarp) {
    float* row = scores + h * kSplitTokens;
    const int lane = threadIdx.x % kWarp;
    float most = -INFINITY;
    for (int i = from + lane; i < to; i += kWarp) most = fmaxf(most, row[i]);
    most = warp_max(most);
    float sum = 0;
    for (int i = lane; i < to; i += kWarp) {
      if (i < from) continue;
      row[i] = __expf(row[i] - most);
      sum += row[i];
    }
    sum = warp_sum(sum);
    if (lane == 0) totals[h] = {most, sum};
  }
  __syncthreads();

  const bool only = first_seen(a, position) / kSplitTokens == position / kSplitTokens;
  for (int d = threadIdx.x; d < a.kv.v_dim; d += kThreads) {
    float sums[kMostHeads] = {};
    for (int i = from; i < to; ++i) {
      const int p = split * kSplitTokens + i;
      const float vf =
          kv_float(v_at<T>(a.kv, table[p / a.kv.block_size], kv_head, p % a.kv.block_size)[d]);
#pragma unroll
      for (int h = 0; h < kMostHeads; ++h) {
        if (h < heads) sums[h] = fmaf(scores[h * kSplitTokens + i], vf, sums[h]);
      }
    }
#pragma unroll
    for (int h = 0; h < kMostHeads; ++h) {
      if (h >= heads) break;
      const int head = first_head + h;
      if (only) {
        store(y, token, static_cast<int64_t>(head) * a.kv.v_dim + d, sums[h] / totals[h].sum);
      } else {
        float* out = partial_at(a, partial, token, head, split, splits);
        out[2 + d] = sums[h];
        if (d == 0) {
          out[0] = totals[h].max;
          out[1] = totals[h].sum;
        }
      }
    }
  }
}

__global__ void join_kernel(AttentionArgs a, Rows y, float* partial, int splits) {
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

}  // namespace

int64_t split_bytes(const AttentionArgs& a, int64_t tokens) {
  const int splits = splits_of(a);
  if (splits <= 1) return 0;
  return tokens * a.heads * splits * (a.kv.v_dim + 2) * static_cast<int64_t>(sizeof(float));
}

void attention_by_token(const AttentionArgs& a, const Rows& q, const Rows& y, void* partial,
                        Stream stream) {
  if (q.rows == 0) return;
  const int splits = splits_of(a);
  const int group = a.heads / a.kv.kv_heads;
  const int parts = (group + kMostHeads - 1) / kMostHeads;
  const size_t shared = sizeof(float) * kMostHeads * static_cast<size_t>(a.kv.k_dim + kSplitTokens);
  auto* sums = static_cast<float*>(partial);
  constexpr int64_t kMost = 65535;  // of a grid's third dimension
  for (int64_t begin = 0; begin < q.rows; begin += kMost) {
    AttentionArgs part = a;
    part.positions += begin;
    part.token_sequence += begin;
    const auto from = [&](const Rows& x) {
      Rows r = x;
      r.data = static_cast<char*>(x.data) + begin * x.stride * (x.is_half ? 2 : 4);
      r.rows = std::min(kMost, x.rows - begin);
      return r;
    };
    const Rows qs = from(q);
    const Rows ys = from(y);
    const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(a.kv.kv_heads * parts),
                    static_cast<unsigned>(qs.rows));
    const auto run = [&](auto kernel) {
      kernel<<<grid, kThreads, shared, stream>>>(part, qs, ys, sums, splits);
    };
    a.kv.is_half ? run(split_kernel<__half>) : run(split_kernel<float>);
    if (splits <= 1) continue;
    const dim3 rows(static_cast<unsigned>(qs.rows), static_cast<unsigned>(a.heads));
    join_kernel<<<rows, a.kv.v_dim <= 64 ? 64 : 128, 0, stream>>>(part, ys, sums, splits);
  }
}

}  // namespace tinyvllm::ops::cuda
