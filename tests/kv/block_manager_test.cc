// Blocks are neither lost nor handed out twice; what is cached is found again, and only that.
#include "kv/block_manager.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace tinyvllm {
namespace {

std::vector<int32_t> tokens_of(int count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

// Runs a sequence of these tokens through the manager, as if it had been computed.
void compute(BlockManager& manager, SequenceBlocks& blocks, const std::vector<int32_t>& tokens,
             std::string_view salt = "") {
  std::vector<BlockCopy> copies;
  const int count = static_cast<int>(tokens.size());
  const int ready = manager.match_prefix(blocks, tokens, salt);
  ASSERT_TRUE(manager.reserve(blocks, ready, count, copies));
  manager.commit(blocks, tokens, count, salt);
}

TEST(BlockPool, HandsOutEveryBlockOnceAndNeverTheNullBlock) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  while (const auto block = pool.allocate()) blocks.insert(*block);
  EXPECT_EQ(blocks, (std::set<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(pool.available(), 0);
}

TEST(BlockPool, ForgetsTheLeastRecentlyUsedIdleBlock) {
  BlockPool pool(3);
  const BlockHash first = next_hash(root_hash(""), std::vector<int32_t>{1});
  const BlockHash second = next_hash(root_hash(""), std::vector<int32_t>{2});
  const int32_t a = *pool.allocate();
  const int32_t b = *pool.allocate();
  pool.publish(a, first);
  pool.publish(b, second);
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.available(), 2);
  pool.share(b);  // used again: now the newer one
  pool.release(b);
  EXPECT_EQ(*pool.allocate(), a);
  EXPECT_FALSE(pool.find(first).has_value());
  EXPECT_EQ(pool.find(second), b);
}

TEST(BlockPoolDeathTest, ReleasingAFreeBlockIsABug) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.release(1), "releasing block 1, which has no user");
}

TEST(BlockManager, FindsAPrefixInWholeBlocksAndLeavesTheLastToken) {
  BlockManager manager({{20, 0}}, 4, true);
  SequenceBlocks first;
  compute(manager, first, tokens_of(10));
  SequenceBlocks second;
  EXPECT_EQ(manager.match_prefix(second, tokens_of(9), ""), 8);
  EXPECT_EQ(second.tables[0][0], first.tables[0][0]);
  manager.release(second);
  EXPECT_EQ(manager.match_prefix(second, tokens_of(8), ""), 4) << "its last token must be computed";
  manager.release(second);
  SequenceBlocks other_tenant;
  EXPECT_EQ(manager.match_prefix(other_tenant, tokens_of(9), "salt"), 0);
  manager.release(other_tenant);
  manager.release(first);
  EXPECT_EQ(manager.match_prefix(second, tokens_of(9), ""), 8) << "idle blocks are still there";
  manager.release(second);
  EXPECT_EQ(manager.available_blocks(), 19);
}

TEST(BlockManager, CopiesAPartlyFilledBlockWhenOneOfItsUsersWrites) {
  BlockManager manager({{20, 0}}, 4, true);
  SequenceBlocks parent;
  compute(manager, parent, tokens_of(6));
  SequenceBlocks child;
  ASSERT_TRUE(manager.fork(parent, child, 5));
  EXPECT_EQ(child.tables, parent.tables);
  std::vector<BlockCopy> copies;
  const int32_t shared = parent.tables[0][1];
  ASSERT_TRUE(manager.reserve(child, 5, 6, copies));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, shared);
  EXPECT_EQ(copies[0].to, child.tables[0][1]);
  EXPECT_NE(child.tables[0][1], parent.tables[0][1]);
  EXPECT_EQ(child.tables[0][0], parent.tables[0][0]) << "full blocks stay shared";
  ASSERT_TRUE(manager.reserve(parent, 6, 7, copies));
  EXPECT_EQ(copies.size(), 1u) << "the last user writes in place";
  manager.release(child);
  manager.release(parent);
  EXPECT_EQ(manager.available_blocks(), 19);
}

TEST(BlockManager, AWindowLetsGoOfWhatNoLaterTokenSees) {
  BlockManager manager({{20, 0}, {20, 5}}, 4, true);
  SequenceBlocks blocks;
  compute(manager, blocks, tokens_of(16));
  // The token at position 15 sees 11 … 15: blocks 0 and 1 are behind its window.
  EXPECT_EQ(blocks.tables[1][1], kNullBlock);
  EXPECT_NE(blocks.tables[1][2], kNullBlock);
  EXPECT_NE(blocks.tables[0][0], kNullBlock);
  SequenceBlocks again;
  EXPECT_EQ(manager.match_prefix(again, tokens_of(17), ""), 16);
  manager.release(again);
  manager.release(blocks);
  EXPECT_EQ(manager.available_blocks(), 19);
}

TEST(BlockManager, ChangesNothingWhenItDoesNotFit) {
  BlockManager manager({{4, 0}, {9, 0}}, 4, true);
  SequenceBlocks one;
  SequenceBlocks two;
  std::vector<BlockCopy> copies;
  ASSERT_TRUE(manager.reserve(one, 0, 8, copies));
  EXPECT_FALSE(manager.reserve(two, 0, 5, copies));
  EXPECT_EQ(manager.pool(0).available(), 1);
  EXPECT_EQ(manager.pool(1).available(), 6);
}

}  // namespace
}  // namespace tinyvllm
