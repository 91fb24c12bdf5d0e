// How a block of the cache is laid out on the CPU: [layer][kv head], and for each of these K as
// [tokens / 8][k_dim][8], so that a vector is one dimension of 8 tokens, then V as [tokens][v_dim
// rounded up to 8]. Block sizes that are not a multiple of 8 are rounded up inside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kv.h"
#include "ops/cpu/kernels.h"

namespace tinyvllm::ops::cpu {

class KvLayout {
 public:
  KvLayout(const KvSpec& spec, int block_size)
      : spec_(spec), element_(row_bytes(spec.dtype, 1)), tokens_(round_up(block_size)) {}
  explicit KvLayout(const KvView& view) : KvLayout(view.spec, view.block_size) {
    data_ = static_cast<char*>(view.data);
  }

  int v_dim() const { return static_cast<int>(round_up(spec_.v_dim)); }
  size_t element_bytes() const { return element_; }
  size_t k_bytes() const { return tokens_ * static_cast<size_t>(spec_.k_dim) * element_; }
  size_t v_bytes() const { return tokens_ * round_up(spec_.v_dim) * element_; }
  size_t block_bytes() const {
    return static_cast<size_t>(spec_.layers) * static_cast<size_t>(spec_.kv_heads) *
           (k_bytes() + v_bytes());
  }

  // K of the 8 tokens from `offset` (a multiple of 8 in the block) on.
  char* k_group(int layer, int32_t block, int head, int offset) const {
    return head_data(layer, block, head) +
           static_cast<size_t>(offset) * static_cast<size_t>(spec_.k_dim) * element_;
  }
  char* v_row(int layer, int32_t block, int head, int offset) const {
    return head_data(layer, block, head) + k_bytes() +
           static_cast<size_t>(offset) * round_up(spec_.v_dim) * element_;
  }

 private:
  static size_t round_up(int n) {
    return (static_cast<size_t>(n) + kKvLanes - 1) / kKvLanes * kKvLanes;
  }
  char* head_data(int layer, int32_t block, int head) const {
    return data_ + static_cast<size_t>(block) * block_bytes() +
           (static_cast<size_t>(layer) * static_cast<size_t>(spec_.kv_heads) +
            static_cast<size_t>(head)) *
               (k_bytes() + v_bytes());
  }

  KvSpec spec_;
  size_t element_;
  size_t tokens_;
  char* data_ = nullptr;
};

}  // namespace tinyvllm::ops::cpu
