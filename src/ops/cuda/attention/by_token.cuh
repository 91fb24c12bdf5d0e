// What attention by token is made of, whatever the cache holds: the cache is cut at fixed positions
// into splits, one block each, for all query heads that share a KV head.
#pragma once

#include "ops/cuda/kv_address.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {

constexpr int kSplitThreads = 2 * kSplitTokens;
constexpr int kMostHeads = 8;  // query heads that one block serves

struct Partial {  // of one (token, head, split): followed by v_dim sums
  float max;
  float sum;
};

__device__ inline float* partial_at(const AttentionArgs& a, float* partial, int64_t token, int head,
                                    int split, int splits) {
  const int64_t index = (token * a.heads + head) * splits + split;
  return partial + index * (a.kv.v_dim + 2);
}

__device__ inline int first_seen(const AttentionArgs& a, int position) {
  return a.kv.window > 0 ? max(0, position + 1 - a.kv.window) : 0;
}

// Blocks that share the query heads of a KV head.
__host__ __device__ inline int parts_of(const AttentionArgs& a) {
  return (a.heads / a.kv.kv_heads + kMostHeads - 1) / kMostHeads;
}

// What one block is about: some query heads of one token that share a KV head, and one split.
struct SplitJob {
  int64_t token;
  int position;
  int kv_head;
  int first_head;
  int heads;
  int split;
  int from;  // tokens of the split that are seen
  int to;
};

// The token and the split; from >= to: the one sees nothing of the other. Waits for what earlier
// kernels wrote.
__device__ inline SplitJob find_job(const AttentionArgs& a) {
  SplitJob job;
  job.split = blockIdx.x;
  job.token = blockIdx.z;
  job.position = a.positions[job.token];
  const int begin = max(job.split * kSplitTokens, first_seen(a, job.position));
  const int end = min((job.split + 1) * kSplitTokens, job.position + 1);
  let_next_begin();
  wait_for_previous();
  job.from = begin - job.split * kSplitTokens;
  job.to = end - job.split * kSplitTokens;
  return job;
}

// Which query heads.
__device__ inline void find_heads(const AttentionArgs& a, SplitJob& job) {
  const int group = a.heads / a.kv.kv_heads;
  const int parts = parts_of(a);
  job.kv_head = blockIdx.y / parts;
  job.first_head = job.kv_head * group + blockIdx.y % parts * kMostHeads;
  job.heads = min(kMostHeads, (job.kv_head + 1) * group - job.first_head);
}

// The blocks of the cache that the split's tokens lie in.
__device__ inline void find_blocks(const AttentionArgs& a, const SplitJob& job, int32_t* blocks) {
  const int32_t* table =
      a.block_table + static_cast<int64_t>(a.token_sequence[job.token]) * a.max_blocks;
  for (int i = job.from + threadIdx.x; i < job.to; i += kSplitThreads) {
    blocks[i] = table[(job.split * kSplitTokens + i) / a.kv.block_size];
  }
}

__device__ inline float capped(const AttentionArgs& a, float score) {
  return a.soft_cap > 0 ? a.soft_cap * tanhf(score / a.soft_cap) : score;
}

// Scores, [heads, pitch], become weights that `keep` gets with their head and token, and their
// totals. Splits but the first of a sequence's window begin at a border, so that sums always run
// over the same tokens in the same order.
template <class Keep>
__device__ void weigh(const SplitJob& job, const float* scores, int pitch, Partial* totals,
                      Keep keep) {
  const int lane = threadIdx.x % kWarp;
  for (int h = threadIdx.x / kWarp; h < job.heads; h += kSplitThreads / kWarp) {
    const float* row = scores + h * pitch;
    float most = -INFINITY;
    for (int i = lane; i < job.to; i += kWarp) most = fmaxf(most, i < job.from ? most : row[i]);
    most = warp_max(most);
    float sum = 0;
    for (int i = lane; i < job.to; i += kWarp) {
      if (i < job.from) continue;
      const float weight = __expf(row[i] - most);
      keep(h, i, weight);
      sum += weight;
    }
    sum = warp_sum(sum);
    if (lane == 0) totals[h] = {most, sum};
  }
}

// Weighted sums of V, sum_of(head, column), to the result, or to the splits that are joined later.
template <class SumOf>
__device__ void hand_over(const AttentionArgs& a, const SplitJob& job, const Rows& y,
                          float* partial, int splits, const Partial* totals, SumOf sum_of) {
  const bool only = first_seen(a, job.position) / kSplitTokens == job.position / kSplitTokens;
  for (int at = threadIdx.x; at < job.heads * a.kv.v_dim; at += kSplitThreads) {
    const int h = at / a.kv.v_dim;
    const int d = at % a.kv.v_dim;
    const int head = job.first_head + h;
    const float sum = sum_of(h, d);
    if (only) {
      store(y, job.token, static_cast<int64_t>(head) * a.kv.v_dim + d, sum / totals[h].sum);
      continue;
    }
    float* out = partial_at(a, partial, job.token, head, job.split, splits);
    out[2 + d] = sum;
    if (d == 0) {
      out[0] = totals[h].max;
      out[1] = totals[h].sum;
    }
  }
}

// by_bytes.cu: the splits of a cache of bytes.
void attend_bytes(const AttentionArgs& a, dim3 grid, const Rows& q, const Rows& y, float* partial,
                  int splits, Stream stream);

}  // namespace tinyvllm::ops::cuda
