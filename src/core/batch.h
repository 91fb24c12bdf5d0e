// One step's input to a model, ragged: sequences of any number of query tokens lie end to end,
// prompt chunks and single decode tokens alike. Everything is int32 in one contiguous buffer, so
// that it reaches a device in one copy; a Batch is that buffer's address plus sizes and means the
// same on host and device. `forward` passes it on to ops and never reads through it on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace tinyvllm {

constexpr int kMaxKvGroups = 4;

struct BatchSizes {
  int num_tokens = 0;
  int num_sequences = 0;
  int num_logits = 0;   // rows whose logits (or hidden states) are wanted
  int num_groups = 1;   // KV groups
  int max_blocks = 0;   // columns of the block tables
  int max_queries = 0;  // longest run of query tokens of one sequence
};

struct Batch {
  BatchSizes sizes;
  const int32_t* data = nullptr;
  const int32_t* host = nullptr;  // the same, where the host may read it
  // A token id below zero stands for what the step before sampled in row ~id, which only the device
  // knows yet. Null: there are none.
  const int32_t* previous = nullptr;

  // Sections, in the order in which they lie.
  const int32_t* token_ids() const { return data; }                            // [num_tokens]
  const int32_t* positions() const { return token_ids() + sizes.num_tokens; }  // [num_tokens]
  // The sequence (row of the tables below) that a token belongs to.
  const int32_t* token_sequence() const { return positions() + sizes.num_tokens; }  // [num_tokens]
  // Where a token's K and V go: block * block_size + offset within the block.
  const int32_t* slots(int group) const {  // [num_groups, num_tokens]
    CHECK(group < sizes.num_groups) << "KV group " << group << " of " << sizes.num_groups;
    return token_sequence() + static_cast<ptrdiff_t>(sizes.num_tokens) * (1 + group);
  }
  const int32_t* query_offsets() const {  // [num_sequences + 1]
    return token_sequence() + static_cast<ptrdiff_t>(sizes.num_tokens) * (1 + sizes.num_groups);
  }
  // Tokens in the cache once this step has written its own: what the last query token attends to.
  const int32_t* kv_lengths() const { return query_offsets() + sizes.num_sequences + 1; }
  const int32_t* adapters() const { return kv_lengths() + sizes.num_sequences; }  // -1: none
  const int32_t* logit_rows() const { return adapters() + sizes.num_sequences; }  // [num_logits]
  const int32_t* block_table(int group) const {  // [num_groups, num_sequences, max_blocks]
    return logit_rows() + sizes.num_logits +
           static_cast<ptrdiff_t>(group) * sizes.num_sequences * sizes.max_blocks;
  }
  static size_t buffer_elements(const BatchSizes& sizes) {
    const auto n = [](int count) { return static_cast<size_t>(count); };
    return n(sizes.num_tokens) * (3 + n(sizes.num_groups)) + (3 * n(sizes.num_sequences) + 1) +
           n(sizes.num_logits) + n(sizes.num_groups) * n(sizes.num_sequences) * n(sizes.max_blocks);
  }
};

}  // namespace tinyvllm
