#include "kv/block_pool.h"

#include <algorithm>

#include "base/check.h"
#include "core/kv.h"

namespace tinyvllm {

BlockPool::BlockPool(int num_blocks) : blocks_(static_cast<size_t>(num_blocks)) {
  CHECK(num_blocks >= 1) << "a pool has at least its null block, found " << num_blocks;
  free_.reserve(blocks_.size());
  for (int32_t block = num_blocks - 1; block > kNullBlock; --block) free_.push_back(block);
}

std::optional<int32_t> BlockPool::allocate() {
  int32_t block = kNone;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
    touched_ = std::max(touched_, block);  // they lie in the stack in order
  } else if (oldest_idle_ != kNone) {
    block = oldest_idle_;
    remove_idle(block);
    published_.erase(at(block).hash);
    at(block).published = false;
  } else {
    return std::nullopt;
  }
  at(block).users = 1;
  return block;
}

void BlockPool::share(int32_t block) {
  CHECK(at(block).users > 0 || at(block).published)
      << "sharing block " << block << ", which is free";
  if (at(block).users == 0) remove_idle(block);
  at(block).users += 1;
}

void BlockPool::release(int32_t block) {
  CHECK(at(block).users > 0) << "releasing block " << block << ", which has no user";
  at(block).users -= 1;
  if (at(block).users > 0) return;
  if (at(block).published) {
    append_idle(block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::publish(int32_t block, const BlockHash& hash) {
  CHECK(at(block).users > 0) << "publishing block " << block << ", which has no user";
  if (at(block).published || !published_.emplace(hash, block).second) return;
  at(block).published = true;
  at(block).hash = hash;
}

std::optional<int32_t> BlockPool::find(const BlockHash& hash) const {
  const auto found = published_.find(hash);
  if (found == published_.end()) return std::nullopt;
  return found->second;
}

void BlockPool::append_idle(int32_t block) {
  at(block).older = newest_idle_;
  at(block).newer = kNone;
  (newest_idle_ == kNone ? oldest_idle_ : at(newest_idle_).newer) = block;
  newest_idle_ = block;
  idle_count_ += 1;
}

void BlockPool::remove_idle(int32_t block) {
  const Block& leaving = at(block);
  (leaving.older == kNone ? oldest_idle_ : at(leaving.older).newer) = leaving.newer;
  (leaving.newer == kNone ? newest_idle_ : at(leaving.newer).older) = leaving.older;
  idle_count_ -= 1;
}

}  // namespace tinyvllm
