// How a block of the cache is laid out on the CPU: [layer][kv head], and for each of these groups
// of 8 tokens, first their K as [k_dim][8], so that a vector is one dimension of 8 tokens, for all
// groups, then their V as [8][v_dim rounded up to 8]. Where numbers have scales, those of a group's
// 8 tokens follow it. Block sizes that are not a multiple of 8 are rounded up inside.
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
  // Of a group of 8 tokens, scales included; without them it is where the scales begin.
  size_t k_group_data() const { return kKvLanes * static_cast<size_t>(spec_.k_dim) * element_; }
  size_t v_group_data() const { return kKvLanes * round_up(spec_.v_dim) * element_; }
  size_t k_group_bytes() const { return k_group_data() + kKvLanes * kv_scale_bytes(spec_); }
  size_t v_group_bytes() const { return v_group_data() + kKvLanes * kv_scale_bytes(spec_); }
  size_t block_bytes() const {
    return static_cast<size_t>(spec_.layers) * static_cast<size_t>(spec_.kv_heads) * head_bytes();
  }

  // The group of 8 tokens that the block's token `offset` is in.
  char* k_group(int layer, int32_t block, int head, int offset) const {
    return head_data(layer, block, head) + static_cast<size_t>(offset / kKvLanes) * k_group_bytes();
  }
  char* v_group(int layer, int32_t block, int head, int offset) const {
    return head_data(layer, block, head) + tokens_ / kKvLanes * k_group_bytes() +
           static_cast<size_t>(offset / kKvLanes) * v_group_bytes();
  }

 private:
  static size_t round_up(int n) {
    return (static_cast<size_t>(n) + kKvLanes - 1) / kKvLanes * kKvLanes;
  }
  size_t head_bytes() const { return tokens_ / kKvLanes * (k_group_bytes() + v_group_bytes()); }
  char* head_data(int layer, int32_t block, int head) const {
    return data_ + static_cast<size_t>(block) * block_bytes() +
           (static_cast<size_t>(layer) * static_cast<size_t>(spec_.kv_heads) +
            static_cast<size_t>(head)) *
               head_bytes();
  }

  KvSpec spec_;
  size_t element_;
  size_t tokens_;
  char* data_ = nullptr;
};

}  // namespace tinyvllm::ops::cpu
