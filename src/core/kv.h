// What the KV cache looks like, as plain data. A model declares groups of layers that cache alike
// (KvSpec); to kv/ and sched/ a block of a group is a number; its bytes are the device's (KvView)
// and their layout is the attention op's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace tinyvllm {

struct KvSpec {
  int layers = 0;  // how many of the model's layers cache in this group
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  DType dtype = DType::kF16;  // or F32, or I8: with one scale per token and head, for K and for V
  int window = 0;             // sliding window in tokens; 0: everything before is seen
};

// Bytes of the scales that go with one token's K or V of one head.
inline size_t kv_scale_bytes(const KvSpec& spec) {
  return spec.dtype == DType::kI8 ? sizeof(float) : 0;
}
// Of one token, all heads of one layer.
inline size_t kv_token_bytes(const KvSpec& spec) {
  return static_cast<size_t>(spec.kv_heads) *
         (row_bytes(spec.dtype, spec.k_dim + spec.v_dim) + 2 * kv_scale_bytes(spec));
}

// One layer's place in the cache.
struct KvLayer {
  int group = 0;
  int index = 0;  // among the group's layers
};

// A group's memory on a device: num_blocks blocks, each of block_size tokens for all its layers.
// Block 0 is the null block: padding writes there and nobody reads it.
struct KvView {
  void* data = nullptr;
  KvSpec spec;
  int block_size = 0;
  int num_blocks = 0;
};

constexpr int32_t kNullBlock = 0;

// A sequence's blocks in order: [group][block].
using BlockTables = std::vector<std::vector<int32_t>>;

}  // namespace tinyvllm
