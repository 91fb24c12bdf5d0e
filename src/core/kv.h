// What the KV cache looks like, as plain data. A model declares groups of layers that cache alike
// (KvSpec); to kv/ and sched/ a block of a group is a number; its bytes are the device's (KvView)
// and their layout is the attention op's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace tinyvllm {

struct KvSpec {
  int layers = 0;  // how many of the model's layers cache in this group
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  DType dtype = DType::kF16;
  int window = 0;  // sliding window in tokens; 0: everything before is seen
};

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
