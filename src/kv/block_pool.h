// The blocks of one KV group. A block is free, in use (by one or more sequences), or idle: used by
// nobody, but its content has a name and can be found again until the block is needed for something
// else, the least recently used first. Host only; a block is a number. Owned by the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kv/block_hash.h"

namespace tinyvllm {

class BlockPool {
 public:
  // Blocks 1 … num_blocks-1 can be had; block 0 is the null block and never handed out.
  explicit BlockPool(int num_blocks);

  std::optional<int32_t> allocate();  // with one user; forgets an idle block when none is free
  void share(int32_t block);          // one user more; wakes an idle block
  void release(int32_t block);  // one user less; at none it is idle, or free if it has no name

  // Names a block in use by its content. When another block has that name already, it keeps it.
  void publish(int32_t block, const BlockHash& hash);
  std::optional<int32_t> find(const BlockHash& hash) const;
  bool is_published(int32_t block) const { return at(block).published; }
  int users(int32_t block) const { return at(block).users; }

  int available() const { return static_cast<int>(free_.size()) + idle_count_; }  // free or idle
  int idle() const { return idle_count_; }
  int total() const { return static_cast<int>(blocks_.size()) - 1; }
  int touched() const { return touched_; }  // handed out at some time: the rest was never written

 private:
  struct Block {
    int users = 0;
    bool published = false;
    BlockHash hash;
    int32_t older = kNone;  // neighbours in the list of idle blocks
    int32_t newer = kNone;
  };
  static constexpr int32_t kNone = -1;

  Block& at(int32_t block) { return blocks_.at(static_cast<size_t>(block)); }
  const Block& at(int32_t block) const { return blocks_.at(static_cast<size_t>(block)); }
  void append_idle(int32_t block);
  void remove_idle(int32_t block);

  std::vector<Block> blocks_;
  std::vector<int32_t> free_;  // a stack: the block freed last is still warm in cache
  int32_t oldest_idle_ = kNone;
  int32_t newest_idle_ = kNone;
  int idle_count_ = 0;
  int32_t touched_ = 0;
  std::unordered_map<BlockHash, int32_t, BlockHashHasher> published_;
};

}  // namespace tinyvllm
