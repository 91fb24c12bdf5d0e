#include "kv/block_pool.h"

#include "base/check.h"
#include "core/kv.h"

namespace tinyvllm {

BlockPool::BlockPool(int num_blocks) : users_(static_cast<size_t>(num_blocks), 0) {
  CHECK(num_blocks >= 1) << "a pool has at least its null block, found " << num_blocks;
  for (int32_t block = num_blocks - 1; block > kNullBlock; --block) free_.push_back(block);
}

std::optional<int32_t> BlockPool::allocate() {
  if (free_.empty()) return std::nullopt;
  const int32_t block = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::share(int32_t block) {
  int32_t& users = users_.at(static_cast<size_t>(block));
  CHECK(users > 0) << "sharing block " << block << ", which is free";
  users += 1;
}

void BlockPool::release(int32_t block) {
  int32_t& users = users_.at(static_cast<size_t>(block));
  CHECK(users > 0) << "releasing block " << block << ", which is free";
  users -= 1;
  if (users == 0) free_.push_back(block);
}

}  // namespace tinyvllm
