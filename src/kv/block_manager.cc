#include "kv/block_manager.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace tinyvllm {

BlockManager::BlockManager(const std::vector<KvGroup>& groups, int block_size, bool prefix_caching)
    : block_size_(block_size), prefix_caching_(prefix_caching), groups_(groups) {
  CHECK(!groups.empty() && block_size >= 1)
      << groups.size() << " groups of blocks of " << block_size;
  for (const KvGroup& group : groups) {
    pools_.emplace_back(group.num_blocks);
    // One sequence must be able to move its window on by a token with nobody else's help.
    CHECK(group.window == 0 || pools_.back().total() >= blocks_for(group.window) + 1)
        << group.num_blocks << " blocks for a window of " << group.window << " tokens";
  }
}

int BlockManager::capacity_tokens() const {
  int blocks = INT32_MAX / block_size_;
  for (size_t group = 0; group < groups_.size(); ++group) {
    // A windowed group lets go of blocks as it moves on, so it is never what limits a sequence.
    if (groups_[group].window == 0) blocks = std::min(blocks, pools_[group].total());
  }
  return blocks * block_size_;
}

int BlockManager::available_blocks() const {
  int available = pools_.front().available();
  for (const BlockPool& pool : pools_) available = std::min(available, pool.available());
  return available;
}

int BlockManager::touched_blocks() const {
  int touched = 0;
  for (const BlockPool& pool : pools_) touched = std::max(touched, pool.touched());
  return touched;
}

int BlockManager::total_blocks() const {
  int total = pools_.front().total();
  for (const BlockPool& pool : pools_) total = std::min(total, pool.total());
  return total;
}

int BlockManager::blocks_behind_window(size_t group, int position) const {
  const int window = groups_[group].window;
  if (window == 0) return 0;
  return std::max(0, position - window + 1) / block_size_;
}

void BlockManager::extend_hashes(SequenceBlocks& blocks, std::span<const int32_t> tokens, int count,
                                 std::string_view salt) const {
  while (static_cast<int>(blocks.hashes.size()) < count) {
    const size_t next = blocks.hashes.size();
    const BlockHash before = next == 0 ? root_hash(salt) : blocks.hashes.back();
    const auto size = static_cast<size_t>(block_size_);
    blocks.hashes.push_back(next_hash(before, tokens.subspan(next * size, size)));
  }
}

int BlockManager::match_prefix(SequenceBlocks& blocks, std::span<const int32_t> tokens,
                               std::string_view salt) {
  CHECK(blocks.tables.empty()) << "a prefix is matched before a sequence has blocks";
  blocks.tables.resize(pools_.size());
  if (!prefix_caching_) return 0;
  const int full = (static_cast<int>(tokens.size()) - 1) / block_size_;
  extend_hashes(blocks, tokens, full, salt);
  const auto cached = [&](size_t group, int block) {
    return pools_[group].find(blocks.hashes[static_cast<size_t>(block)]).has_value();
  };
  // The longest run that every group without a window has; then shorter ones, until the windowed
  // groups have the blocks that the next token still sees.
  int matched = full;
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].window != 0) continue;
    int run = 0;
    while (run < matched && cached(group, run)) run += 1;
    matched = run;
  }
  const auto window_is_cached = [&](size_t group) {
    int block = blocks_behind_window(group, matched * block_size_);
    while (block < matched && cached(group, block)) block += 1;
    return block == matched;
  };
  const auto windows_are_cached = [&] {
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].window != 0 && !window_is_cached(group)) return false;
    }
    return true;
  };
  while (matched > 0 && !windows_are_cached()) matched -= 1;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int behind = blocks_behind_window(group, matched * block_size_);
    for (int i = 0; i < matched; ++i) {
      const int32_t block =
          i < behind ? kNullBlock : *pools_[group].find(blocks.hashes[static_cast<size_t>(i)]);
      if (block != kNullBlock) pools_[group].share(block);
      blocks.tables[group].push_back(block);
    }
  }
  blocks.capacity = matched * block_size_;
  blocks.published = matched;
  return blocks.capacity;
}

bool BlockManager::reserve(SequenceBlocks& blocks, int begin, int end,
                           std::vector<BlockCopy>& copies) {
  blocks.tables.resize(pools_.size());
  const int first = begin / block_size_;  // blocks before this one are only read
  const int have = blocks.capacity / block_size_;
  const int want = std::max(have, blocks_for(end));
  const auto is_shared = [&](size_t group, int i) {
    const int32_t block = blocks.tables[group][static_cast<size_t>(i)];
    return block != kNullBlock &&
           (pools_[group].users(block) > 1 || pools_[group].is_published(block));
  };
  for (size_t group = 0; group < pools_.size(); ++group) {
    int needed = want - have;
    for (int i = first; i < std::min(have, blocks_for(end)); ++i)
      needed += is_shared(group, i) ? 1 : 0;
    if (needed > pools_[group].available()) return false;
  }
  for (size_t group = 0; group < pools_.size(); ++group) {
    std::vector<int32_t>& table = blocks.tables[group];
    for (int i = first; i < std::min(have, blocks_for(end)); ++i) {
      if (!is_shared(group, i)) continue;
      int32_t& block = table[static_cast<size_t>(i)];
      const int32_t own = *pools_[group].allocate();
      copies.push_back({static_cast<int>(group), block, own});
      pools_[group].release(block);
      block = own;
    }
    for (int i = have; i < want; ++i) table.push_back(*pools_[group].allocate());
  }
  blocks.capacity = want * block_size_;
  return true;
}

bool BlockManager::fork(const SequenceBlocks& parent, SequenceBlocks& child, int tokens) {
  CHECK(child.tables.empty()) << "a sequence is forked before it has blocks";
  const int count = blocks_for(tokens);
  for (size_t group = 0; group < pools_.size(); ++group) {
    for (int i = blocks_behind_window(group, tokens); i < count; ++i) {
      if (parent.tables[group][static_cast<size_t>(i)] == kNullBlock) return false;
    }
  }
  child.tables.resize(pools_.size());
  for (size_t group = 0; group < pools_.size(); ++group) {
    const std::vector<int32_t>& table = parent.tables[group];
    child.tables[group].assign(table.begin(), table.begin() + count);
    for (const int32_t block : child.tables[group]) {
      if (block != kNullBlock) pools_[group].share(block);
    }
  }
  const int full = std::min(tokens / block_size_, static_cast<int>(parent.hashes.size()));
  child.hashes.assign(parent.hashes.begin(), parent.hashes.begin() + full);
  child.published = std::min(parent.published, full);
  child.capacity = count * block_size_;
  return true;
}

void BlockManager::commit(SequenceBlocks& blocks, std::span<const int32_t> tokens, int computed,
                          std::string_view salt) {
  const int full = computed / block_size_;
  if (prefix_caching_ && full > blocks.published) {
    extend_hashes(blocks, tokens, full, salt);
    for (size_t group = 0; group < pools_.size(); ++group) {
      for (int i = blocks.published; i < full; ++i) {
        const int32_t block = blocks.tables[group][static_cast<size_t>(i)];
        if (block != kNullBlock) {
          pools_[group].publish(block, blocks.hashes[static_cast<size_t>(i)]);
        }
      }
    }
    blocks.published = full;
  }
  // The last token may have to be computed once more, when a step brought no sample.
  for (size_t group = 0; group < pools_.size(); ++group) {
    for (int i = blocks_behind_window(group, computed - 1) - 1; i >= 0; --i) {
      int32_t& block = blocks.tables[group][static_cast<size_t>(i)];
      if (block == kNullBlock) break;  // those before it went earlier
      pools_[group].release(block);
      block = kNullBlock;
    }
  }
}

void BlockManager::release(SequenceBlocks& blocks) {
  for (size_t group = 0; group < blocks.tables.size(); ++group) {
    // Last block first, so that of idle blocks the ends of prefixes are forgotten before their
    // heads.
    const std::vector<int32_t>& table = blocks.tables[group];
    for (auto block = table.rbegin(); block != table.rend(); ++block) {
      if (*block != kNullBlock) pools_[group].release(*block);
    }
  }
  blocks.tables.clear();
  blocks.published = 0;
  blocks.capacity = 0;
}

}  // namespace tinyvllm
