// Blocks are neither lost nor handed out twice.
#include "kv/block_manager.h"

#include <gtest/gtest.h>
#include <set>

namespace tinyvllm {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnceAndNeverTheNullBlock) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  while (const auto block = pool.allocate()) blocks.insert(*block);
  EXPECT_EQ(blocks, (std::set<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(pool.free_blocks(), 0);
}

TEST(BlockPool, FreesASharedBlockWithItsLastUser) {
  BlockPool pool(2);
  const int32_t block = *pool.allocate();
  pool.share(block);
  pool.release(block);
  EXPECT_EQ(pool.free_blocks(), 0);
  pool.release(block);
  EXPECT_EQ(pool.free_blocks(), 1);
}

TEST(BlockPoolDeathTest, ReleasingAFreeBlockIsABug) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.release(1), "releasing block 1, which is free");
}

TEST(BlockManager, GrowsByWholeBlocksInEveryGroup) {
  BlockManager blocks(/*groups=*/2, /*block_size=*/4, /*num_blocks=*/6);
  ASSERT_TRUE(blocks.grow(7, 1));
  ASSERT_TRUE(blocks.grow(7, 4));
  EXPECT_EQ(blocks.tables(7)[0].size(), 1u);
  ASSERT_TRUE(blocks.grow(7, 5));
  EXPECT_EQ(blocks.tables(7)[1].size(), 2u);
  EXPECT_EQ(blocks.free_blocks(), 3);
}

TEST(BlockManager, ChangesNothingWhenItDoesNotFit) {
  BlockManager blocks(1, 4, 4);
  ASSERT_TRUE(blocks.grow(1, 8));
  EXPECT_FALSE(blocks.grow(2, 5));
  EXPECT_EQ(blocks.free_blocks(), 1);
  blocks.release(2);
  blocks.release(1);
  EXPECT_EQ(blocks.free_blocks(), 3);
}

}  // namespace
}  // namespace tinyvllm
