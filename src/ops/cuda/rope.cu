// Rotates q where it lies and k on its way into the cache, v beside it. A block per token: a thread
// has one pair of columns, whose sine and cosine serve every head.
#include "ops/cuda/kv_address.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 256;

struct Turn {
  float cosine;
  float sine;
  __device__ float2 of(float a, float b) const {
    return {a * cosine - b * sine, a * sine + b * cosine};
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    rope_kernel(const __grid_constant__ RopeArgs rope, KvArgs kv, const int32_t* positions,
                const int32_t* slots, int heads, Rows q, Rows k, Rows v) {
  const int64_t row = blockIdx.x;
  const int pairs = rope.rotary_dim / 2;
  const int pair = threadIdx.x % pairs;
  const int first = rope.adjacent ? 2 * pair : pair;
  const int second = rope.adjacent ? 2 * pair + 1 : pair + pairs;
  Turn turn;
  sincosf(static_cast<float>(positions[row]) * rope.frequencies[pair], &turn.sine, &turn.cosine);
  turn.sine *= rope.magnitude;
  turn.cosine *= rope.magnitude;
  let_next_begin();
  wait_for_previous();

  const int teams = kThreads / pairs;
  const int team = threadIdx.x / pairs;
  for (int head = team; head < heads && team < teams; head += teams) {
    const int64_t at = static_cast<int64_t>(head) * rope.head_dim;
    const float2 turned = turn.of(load(q, row, at + first), load(q, row, at + second));
    store(q, row, at + first, turned.x);
    store(q, row, at + second, turned.y);
  }
  const int32_t slot = slots[row];
  const int64_t block = slot / kv.block_size;
  const int offset = slot % kv.block_size;
  for (int head = team; head < kv.kv_heads && team < teams; head += teams) {
    const int64_t at = static_cast<int64_t>(head) * kv.k_dim;
    T* to = k_at<T>(kv, block, head, offset);
    const float2 turned = turn.of(load(k, row, at + first), load(k, row, at + second));
    kv_store(to + first, turned.x);
    kv_store(to + second, turned.y);
  }
  const int rest = kv.k_dim - rope.rotary_dim;  // of K: not turned
  for (int i = threadIdx.x; i < kv.kv_heads * rest; i += kThreads) {
    const int head = i / rest;
    const int column = rope.rotary_dim + i % rest;
    kv_store(k_at<T>(kv, block, head, offset) + column,
             load(k, row, static_cast<int64_t>(head) * kv.k_dim + column));
  }
  for (int i = threadIdx.x; i < kv.kv_heads * kv.v_dim; i += kThreads) {
    kv_store(v_at<T>(kv, block, i / kv.v_dim, offset) + i % kv.v_dim, load(v, row, i));
  }
}

}  // namespace

void rope_kv_write(const RopeArgs& rope, const KvArgs& kv, const int32_t* positions,
                   const int32_t* slots, const Rows& q, const Rows& k, const Rows& v,
                   Stream stream) {
  if (q.rows == 0) return;
  const int heads = static_cast<int>(q.cols) / rope.head_dim;
  const auto run = [&](auto kernel) {
    launch_behind(kernel, static_cast<unsigned>(q.rows), kThreads, 0, stream, rope, kv, positions,
                  slots, heads, q, k, v);
  };
  kv.is_half ? run(rope_kernel<__half>) : run(rope_kernel<float>);
}

}  // namespace tinyvllm::ops::cuda
