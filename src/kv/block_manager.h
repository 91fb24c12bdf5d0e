// Gives sequences their blocks, over one pool per KV group: growth, sharing with copy on write,
// prefix reuse, and the blocks that a sliding window has left behind. Owned by the engine thread.
//
// Steps run on the device in the order in which they were submitted. So a block may be given away
// as soon as the plan no longer uses it, even while an earlier step that writes it is still in
// flight.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/kv.h"
#include "core/step_plan.h"
#include "kv/block_pool.h"
#include "tinyvllm/engine_options.h"

namespace tinyvllm {

// A sequence's blocks and the names of those that are full. Empty until the sequence runs.
struct SequenceBlocks {
  BlockTables tables;             // [group][block]; a block that left the window is kNullBlock
  std::vector<BlockHash> hashes;  // of its full blocks, as far as they are known
  int published = 0;              // how many of them have been given their name
  int capacity = 0;               // tokens that the tables hold
};

struct KvGroup {
  int num_blocks = 0;  // the null block counted in
  int window = 0;      // 0: everything before is seen
};

class BlockManager {
 public:
  BlockManager(const std::vector<KvGroup>& groups, int block_size, bool prefix_caching);

  int block_size() const { return block_size_; }
  int capacity_tokens() const;   // that one sequence can have if it has all blocks to itself
  int available_blocks() const;  // in the group that has the fewest
  int total_blocks() const;
  int used_blocks() const { return total_blocks() - available_blocks(); }
  int touched_blocks() const;  // in the group that has the most
  const PrefixStats& prefix_stats() const { return stats_; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }

  // Starts `blocks` with the longest cached prefix of `tokens`, whole blocks, at least the last
  // token left out. Returns the tokens that need not be computed.
  int match_prefix(SequenceBlocks& blocks, std::span<const int32_t> tokens, std::string_view salt);

  // Makes room for tokens [begin, end) to be written: grows the tables, and replaces blocks in that
  // range that others use too, appending to `copies` what must be copied first. All or nothing.
  bool reserve(SequenceBlocks& blocks, int begin, int end, std::vector<BlockCopy>& copies);

  // Starts `child` with what `parent` has cached of its first `tokens` tokens; false, and nothing
  // done, when the parent has let go of something that the child would still see.
  bool fork(const SequenceBlocks& parent, SequenceBlocks& child, int tokens);

  // tokens[0, computed) are in the cache for good: names the blocks they fill, and lets go of those
  // that no later token can see.
  void commit(SequenceBlocks& blocks, std::span<const int32_t> tokens, int computed,
              std::string_view salt);

  // Gives all blocks back. The names stay: they follow from the tokens alone.
  void release(SequenceBlocks& blocks);

  void count_prefix_query(int tokens, int hits) {
    stats_.queried_tokens += static_cast<uint64_t>(tokens);
    stats_.hit_tokens += static_cast<uint64_t>(hits);
  }

 private:
  int blocks_for(int tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  // Blocks in front that a token at `position` and all after it cannot see.
  int blocks_behind_window(size_t group, int position) const;
  void extend_hashes(SequenceBlocks& blocks, std::span<const int32_t> tokens, int count,
                     std::string_view salt) const;

  const int block_size_;
  const bool prefix_caching_;
  std::vector<KvGroup> groups_;
  std::vector<BlockPool> pools_;
  PrefixStats stats_;
};

}  // namespace tinyvllm
