// Where a token's K and V lie in the cache (kernels.h, KvArgs).
#pragma once

#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {

// K of one head, token `offset` of a block, in elements of T.
template <class T>
__device__ inline T* k_at(const KvArgs& kv, int64_t block, int head, int offset) {
  auto* data = reinterpret_cast<T*>(kv.data + block * kv.block_bytes);
  return data + (static_cast<int64_t>(head) * kv.block_size + offset) * kv.k_dim;
}
template <class T>
__device__ inline T* v_at(const KvArgs& kv, int64_t block, int head, int offset) {
  auto* data = reinterpret_cast<T*>(kv.data + block * kv.block_bytes);
  return data + static_cast<int64_t>(kv.kv_heads) * kv.block_size * kv.k_dim +
         (static_cast<int64_t>(head) * kv.block_size + offset) * kv.v_dim;
}

// What the bytes of one head's K, or V, of one token are multiplied with.
__device__ inline float* k_scale_at(const KvArgs& kv, int64_t block, int head, int offset) {
  const int64_t bytes = static_cast<int64_t>(kv.kv_heads) * kv.block_size * (kv.k_dim + kv.v_dim);
  auto* scales = reinterpret_cast<float*>(kv.data + block * kv.block_bytes + (bytes + 3) / 4 * 4);
  return scales + static_cast<int64_t>(head) * kv.block_size + offset;
}
__device__ inline float* v_scale_at(const KvArgs& kv, int64_t block, int head, int offset) {
  return k_scale_at(kv, block, head, offset) + static_cast<int64_t>(kv.kv_heads) * kv.block_size;
}

__device__ inline float kv_float(float v) { return v; }
__device__ inline float kv_float(__half v) { return __half2float(v); }
__device__ inline void kv_store(float* to, float v) { *to = v; }
__device__ inline void kv_store(__half* to, float v) { *to = to_half(v); }

}  // namespace tinyvllm::ops::cuda
