// The roofline against numbers worked out by hand.
#include "telemetry/roofline.h"

#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

const MachineLimits kLimits{10e9, 100e9, 400e9};  // bytes, float and int8 operations a second

TEST(Roofline, TheSlowerOfMemoryAndArithmeticBinds) {
  Roofline roofline;
  // 1 GB takes 100 ms of memory; 2 GFLOP take 20 ms as floats.
  roofline.add("decoding", DType::kF16, Phase::kDecode, {1, 0.1, 0.5e9, 1e9});
  roofline.add("decoding", DType::kF16, Phase::kDecode, {1, 0.1, 0.5e9, 1e9});
  // 40 GFLOP take 400 ms as floats, a quarter of that as bytes.
  roofline.add("prompt", DType::kF16, Phase::kPrefill, {1, 0.5, 1e9, 40e9});
  roofline.add("prompt", DType::kQ4_0, Phase::kPrefill, {1, 0.25, 0.5e9, 40e9});
  // 1 GB within 10 ms never came from memory: only its 0.5 GFLOP count.
  roofline.add("norm", DType::kF32, Phase::kDecode, {3, 0.01, 1e9, 0.5e9});
  roofline.add_wall(1.0);
  const RooflineTable table = roofline.table(kLimits);

  ASSERT_EQ(table.rows.size(), 4u);
  const RooflineRow& floats = table.rows[0];
  EXPECT_EQ(floats.bound, Bound::kCompute);
  EXPECT_DOUBLE_EQ(floats.limit_seconds, 0.4);
  EXPECT_DOUBLE_EQ(floats.limit_percent, 80);
  EXPECT_DOUBLE_EQ(floats.share, 0.5);
  EXPECT_DOUBLE_EQ(floats.gflop_per_s, 80);
  const RooflineRow& quantized = table.rows[1];
  EXPECT_EQ(quantized.bound, Bound::kCompute);
  EXPECT_DOUBLE_EQ(quantized.limit_seconds, 0.1);
  const RooflineRow& decoding = table.rows[2];
  EXPECT_EQ(decoding.work.calls, 2);
  EXPECT_EQ(decoding.bound, Bound::kMemory);
  EXPECT_DOUBLE_EQ(decoding.limit_seconds, 0.1);
  EXPECT_DOUBLE_EQ(decoding.gb_per_s, 5);
  const RooflineRow& norm = table.rows[3];
  EXPECT_EQ(norm.bound, Bound::kCache);
  EXPECT_DOUBLE_EQ(norm.limit_seconds, 0.005);

  EXPECT_DOUBLE_EQ(table.op_seconds, 0.96);
  EXPECT_DOUBLE_EQ(table.limit_seconds, 0.4 + 0.1 + 0.1 + 0.005);
  EXPECT_NEAR(table.unexplained_seconds(), 0.04, 1e-12);
  EXPECT_NE(to_text(table).find("no op explains"), std::string::npos);
}

TEST(Roofline, WithoutLimitsItStillCountsTimeAndSpeed) {
  Roofline roofline;
  roofline.add("linear", DType::kF16, Phase::kDecode, {1, 0.5, 1e9, 2e9});
  const RooflineTable table = roofline.table({});
  EXPECT_EQ(table.rows[0].bound, Bound::kUnknown);
  EXPECT_DOUBLE_EQ(table.rows[0].limit_percent, 0);
  EXPECT_DOUBLE_EQ(table.rows[0].gb_per_s, 2);
  EXPECT_DOUBLE_EQ(table.rows[0].share, 1);  // of the ops, where nobody counted steps
}

}  // namespace
}  // namespace tinyvllm
