// Parts and their whole: nothing is lost, nothing counts twice, and advice follows the numbers.
#include "report/breakdown.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace tinyvllm {
namespace {

Breakdown example() {
  TimedPart decode{"Decode forward", {4, 5, 6}, 12, "memory", TimedPart::kDecode};
  TimedPart sampling{"Sampling", {1, 1, 1}, 0, "", TimedPart::kSampling};
  return {{sampling, decode}, 20};
}

TEST(Breakdown, PartsAndWhatTheyLeaveAreTheWhole) {
  const Table table = to_table(example());
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"Decode forward", "15.0", "3", "5.000",
                                                     "5.000", "75.0%", "80%"}));
  EXPECT_EQ(table.rows[1][0], "Sampling");
  EXPECT_EQ(table.rows[2][0], "Unaccounted");
  EXPECT_EQ(table.rows[2][1], "2.0");
  double sum = 0;
  for (const auto& row : table.rows) sum += std::stod(row[1]);
  EXPECT_NEAR(sum, std::stod(table.total[1]), 0.02 * sum);
}

TEST(Breakdown, CountingTwiceIsAnError) {
  Breakdown twice = example();
  EXPECT_TRUE(twice.check().ok());
  twice.parts.push_back(twice.parts.back());
  EXPECT_FALSE(twice.check().ok());
}

TEST(Bottleneck, FollowsFromTheNumbers) {
  const auto finding = [](std::vector<TimedPart> parts) {
    return find_bottleneck({std::move(parts), 10}).finding;
  };
  EXPECT_TRUE(
      finding({{"d", {8}, 7, "memory", TimedPart::kDecode}}).starts_with("Bandwidth-bound: 88%"));
  EXPECT_TRUE(
      finding({{"p", {8}, 7, "multiplying", TimedPart::kPrefill}}).starts_with("Compute-bound"));
  EXPECT_TRUE(
      finding({{"d", {8}, 2, "memory", TimedPart::kDecode}}).starts_with("Below its limit: 25%"));
  EXPECT_TRUE(finding({{"s", {8}, 0, "", TimedPart::kSampling}}).starts_with("Overhead"));
  EXPECT_EQ(find_bottleneck({{{"d", {4}, 3, "memory", TimedPart::kDecode}}, 10}).part,
            "Unaccounted");
}

}  // namespace
}  // namespace tinyvllm
