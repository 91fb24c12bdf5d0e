// Block tables of all running sequences, over one pool per KV group. Owned by the engine thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/kv.h"
#include "core/step_plan.h"
#include "kv/block_pool.h"

namespace tinyvllm {

class BlockManager {
 public:
  // Each group has num_blocks blocks of block_size tokens, the null block counted in.
  BlockManager(int groups, int block_size, int num_blocks);

  int block_size() const { return block_size_; }
  int capacity_tokens() const { return pools_.front().total_blocks() * block_size_; }
  int free_blocks() const;

  // Whether a sequence of that many tokens fits into what is free now.
  bool fits(int tokens) const { return blocks_for(tokens) <= free_blocks(); }

  // Grows the sequence's tables to hold `tokens` tokens; false, and nothing changed, if they do not
  // fit.
  bool grow(SequenceId sequence, int tokens);
  void release(SequenceId sequence);

  const BlockTables& tables(SequenceId sequence) const;

 private:
  int blocks_for(int tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  const int block_size_;
  std::vector<BlockPool> pools_;  // [group]
  std::unordered_map<SequenceId, BlockTables> tables_;
};

}  // namespace tinyvllm
