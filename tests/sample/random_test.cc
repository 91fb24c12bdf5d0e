// Philox is the published one, and weights are 2^x to the float's precision.
#include "sample/random.h"

#include <cmath>
#include <gtest/gtest.h>

#include "sample/weight.h"

namespace tinyvllm {
namespace {

// Known answers of the authors' distribution (Random123, kat_vectors: philox4x32 10).
TEST(Random, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ~uint64_t{0}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryPartOfTheKeyCounts) {
  const uint64_t bits = random_bits({1, 2, 3}, Draw::kToken);
  EXPECT_EQ(random_bits({1, 2, 3}, Draw::kToken), bits);
  EXPECT_NE(random_bits({9, 2, 3}, Draw::kToken), bits);
  EXPECT_NE(random_bits({1 | uint64_t{1} << 63, 2, 3}, Draw::kToken), bits);
  EXPECT_NE(random_bits({1, 9, 3}, Draw::kToken), bits);
  EXPECT_NE(random_bits({1, 2, 9}, Draw::kToken), bits);
  EXPECT_NE(random_bits({1, 2, 3}, Draw::kXtc), bits);
}

TEST(Random, NumbersStayBelowTheirTotal) {
  double sum = 0;
  for (uint32_t position = 0; position < 10000; ++position) {
    ASSERT_LT(random_below({7, 0, position}, Draw::kToken, 3), 3u);
    ASSERT_EQ(random_below({7, 0, position}, Draw::kToken, 1), 0u);
    const double unit = random_unit({7, 0, position}, Draw::kToken);
    ASSERT_TRUE(unit >= 0 && unit < 1);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);  // the standard deviation of the mean is 0.003
}

TEST(Random, SeedsDrawnAnewDiffer) { EXPECT_NE(random_seed(), random_seed()); }

TEST(Weight, IsAPowerOfTwoRounded) {
  EXPECT_EQ(weight_of(0), kTopWeight);
  EXPECT_EQ(weight_of(-1), kTopWeight / 2);
  EXPECT_EQ(weight_of(kFloorOctaves), 1u);
  for (float octaves = 0; octaves >= kFloorOctaves; octaves -= 0.00037f) {
    const double exact = std::exp2(30.0 + octaves);
    ASSERT_NEAR(weight_of(octaves), exact, 0.5001 + 2.5e-7 * exact) << octaves;
  }
}

TEST(Weight, IsNothingBelowTheFloor) {
  EXPECT_EQ(weight_of(std::nextafterf(kFloorOctaves, -INFINITY)), 0u);
  EXPECT_EQ(weight_of(-1e30f), 0u);
  EXPECT_EQ(weight_of(-INFINITY), 0u);
  EXPECT_EQ(weight_of(NAN), 0u);
}

}  // namespace
}  // namespace tinyvllm
