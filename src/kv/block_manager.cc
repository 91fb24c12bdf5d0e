#include "kv/block_manager.h"

#include <algorithm>

#include "base/check.h"

namespace tinyvllm {

BlockManager::BlockManager(int groups, int block_size, int num_blocks)
    : block_size_(block_size), pools_(static_cast<size_t>(groups), BlockPool(num_blocks)) {
  CHECK(groups >= 1 && block_size >= 1) << groups << " groups of blocks of " << block_size;
}

int BlockManager::free_blocks() const {
  int free = pools_.front().free_blocks();
  for (const BlockPool& pool : pools_) free = std::min(free, pool.free_blocks());
  return free;
}

bool BlockManager::grow(SequenceId sequence, int tokens) {
  auto& tables = tables_[sequence];
  tables.resize(pools_.size());
  const int missing = blocks_for(tokens) - static_cast<int>(tables.front().size());
  if (missing > free_blocks()) return false;
  for (size_t group = 0; group < pools_.size(); ++group) {
    for (int i = 0; i < missing; ++i) tables[group].push_back(*pools_[group].allocate());
  }
  return true;
}

void BlockManager::release(SequenceId sequence) {
  const auto found = tables_.find(sequence);
  if (found == tables_.end()) return;
  for (size_t group = 0; group < pools_.size(); ++group) {
    for (const int32_t block : found->second[group]) pools_[group].release(block);
  }
  tables_.erase(found);
}

const BlockTables& BlockManager::tables(SequenceId sequence) const {
  const auto found = tables_.find(sequence);
  CHECK(found != tables_.end()) << "sequence " << sequence << " has no blocks";
  return found->second;
}

}  // namespace tinyvllm
