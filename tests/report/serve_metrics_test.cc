// Two requests that anyone can add up by hand.
#include "report/serve_metrics.h"

#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

std::vector<ServedRequest> two_and_a_failure() {
  ServedRequest quick{true, {}, 0, 0.1, 0.5, {0.2, 0.2}, 10, 3};
  ServedRequest slow{true, {}, 0.25, 0.5, 1.75, {1.25}, 20, 2};
  ServedRequest dead{false, "refused", 1.9, 0, 0.05};
  return {quick, slow, dead};
}

TEST(ServeMetrics, AreWhatVllmPrints) {
  const ServeMetrics m = sum_up(two_and_a_failure(), 2, {{"ttft", 600}, {"tpot", 250}});
  EXPECT_EQ(m.completed, 2);
  EXPECT_EQ(m.failed, 1);
  EXPECT_EQ(m.good, 1);  // the second one is too slow from token to token
  EXPECT_EQ(m.peak_concurrent, 2);
  EXPECT_DOUBLE_EQ(m.per_s(m.output_tokens), 2.5);
  EXPECT_DOUBLE_EQ(m.per_s(m.input_tokens + m.output_tokens), 17.5);
  EXPECT_DOUBLE_EQ(m.peak_output_tok_s, 4);  // three of the first, one of the second
  ASSERT_EQ(m.tpot_ms.size(), 2u);
  EXPECT_DOUBLE_EQ(m.tpot_ms[0], 200);
  EXPECT_DOUBLE_EQ(m.tpot_ms[1], 1250);
  EXPECT_EQ(m.itl_ms.size(), 3u);
  EXPECT_EQ(latency_table(m).rows[0][2], "300.00");  // between 100 and 500
  EXPECT_EQ(counts_table(m, true).rows[6][1], "0.50");
}

TEST(ServeMetrics, OfNothingAreZero) {
  const ServeMetrics m = sum_up({}, 0, {});
  EXPECT_EQ(m.per_s(m.completed), 0);
  EXPECT_EQ(latency_table(m).rows[3][1], "0.00");
}

}  // namespace
}  // namespace tinyvllm
