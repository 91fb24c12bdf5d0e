// The blocks of one KV group, counted: which are free, and how many users each of the others has.
// Host only; a block is a number. Owned by the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tinyvllm {

class BlockPool {
 public:
  // Blocks 1 … num_blocks-1 can be had; block 0 is the null block and never handed out.
  explicit BlockPool(int num_blocks);

  std::optional<int32_t> allocate();  // with one user
  void share(int32_t block);          // one user more
  void release(int32_t block);        // one user less; free again at none

  int free_blocks() const { return static_cast<int>(free_.size()); }
  int total_blocks() const { return static_cast<int>(users_.size()) - 1; }

 private:
  std::vector<int32_t> users_;  // per block
  std::vector<int32_t> free_;   // a stack: the block freed last is still warm in cache
};

}  // namespace tinyvllm
