// Rotates q where it lies and k on its way into the cache, v beside it. A block per token and head.
#include "ops/cuda/kv_address.cuh"

namespace tinyvllm::ops::cuda {
namespace {

struct Rotated {
  int first;
  int second;
  float a;
  float b;
};

// Pair i of a head at position p: which two elements, and what becomes of them.
__device__ Rotated rotate(const RopeArgs& rope, const Rows& x, int64_t row, int64_t head, int pair,
                          float position) {
  Rotated r;
  r.first = rope.adjacent ? 2 * pair : pair;
  r.second = rope.adjacent ? 2 * pair + 1 : pair + rope.rotary_dim / 2;
  float sine;
  float cosine;
  sincosf(position * rope.frequencies[pair], &sine, &cosine);
  sine *= rope.magnitude;
  cosine *= rope.magnitude;
  const float x0 = load(x, row, head * rope.head_dim + r.first);
  const float x1 = load(x, row, head * rope.head_dim + r.second);
  r.a = x0 * cosine - x1 * sine;
  r.b = x0 * sine + x1 * cosine;
  return r;
}

template <class T>
__global__ void rope_kernel(const __grid_constant__ RopeArgs rope, KvArgs kv,
                            const int32_t* positions, const int32_t* slots, int heads, Rows q,
                            Rows k, Rows v) {
  const int64_t row = blockIdx.x;
  const auto position = static_cast<float>(positions[row]);
  const int pairs = rope.rotary_dim / 2;
  const int y = static_cast<int>(blockIdx.y);
  if (y < heads) {
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      const Rotated r = rotate(rope, q, row, y, i, position);
      store(q, row, static_cast<int64_t>(y) * rope.head_dim + r.first, r.a);
      store(q, row, static_cast<int64_t>(y) * rope.head_dim + r.second, r.b);
    }
    return;
  }
  const int head = y - heads;
  const int32_t slot = slots[row];
  const int offset = slot % kv.block_size;
  T* to = k_at<T>(kv, slot / kv.block_size, head, offset);
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    const Rotated r = rotate(rope, k, row, head, i, position);
    kv_store(to + r.first, r.a);
    kv_store(to + r.second, r.b);
  }
  for (int i = rope.rotary_dim + threadIdx.x; i < kv.k_dim; i += blockDim.x) {
    kv_store(to + i, load(k, row, static_cast<int64_t>(head) * kv.k_dim + i));
  }
  to = v_at<T>(kv, slot / kv.block_size, head, offset);
  for (int i = threadIdx.x; i < kv.v_dim; i += blockDim.x) {
    kv_store(to + i, load(v, row, static_cast<int64_t>(head) * kv.v_dim + i));
  }
}

}  // namespace

void rope_kv_write(const RopeArgs& rope, const KvArgs& kv, const int32_t* positions,
                   const int32_t* slots, const Rows& q, const Rows& k, const Rows& v,
                   Stream stream) {
  if (q.rows == 0) return;
  const int heads = static_cast<int>(q.cols) / rope.head_dim;
  const dim3 grid(static_cast<unsigned>(q.rows), static_cast<unsigned>(heads + kv.kv_heads));
  const int threads = kv.k_dim <= 64 ? 32 : 64;
  const auto run = [&](auto kernel) {
    kernel<<<grid, threads, 0, stream>>>(rope, kv, positions, slots, heads, q, k, v);
  };
  kv.is_half ? run(rope_kernel<__half>) : run(rope_kernel<float>);
}

}  // namespace tinyvllm::ops::cuda
