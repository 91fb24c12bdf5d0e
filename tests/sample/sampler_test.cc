// Greedy is exact; a temperature gives the distribution it promises; a seed gives the same token
// whatever else is in the batch.
#include "sample/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "device/cpu/cpu_device.h"
#include "sample/reference/sample_row.h"

namespace tinyvllm {
namespace {

SampleOutput sample_one(const std::vector<float>& logits, const SamplingParams& params,
                        uint32_t position) {
  return reference::sample_row(logits.data(), static_cast<int64_t>(logits.size()),
                               {&params, position});
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  SamplingParams greedy;
  greedy.temperature = 0;
  const SampleOutput chosen = sample_one({1, 3, 3, 2}, greedy, 0);
  EXPECT_EQ(chosen.token, 1);
  const double total = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_NEAR(chosen.logprob, 3 - std::log(total), 1e-6);
}

TEST(Sampler, RowsThatAreNotNumbersChooseNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  SamplingParams params;
  for (const double temperature : {0.0, 1.0}) {
    params.temperature = temperature;
    EXPECT_EQ(sample_one({1, nan, 2}, params, 0).token, -1);
    EXPECT_EQ(sample_one({-inf, -inf}, params, 0).token, -1);
    EXPECT_EQ(sample_one({1, inf}, params, 0).token, -1);
    EXPECT_EQ(sample_one({-inf, 0}, params, 0).token, 1);
  }
}

TEST(Sampler, TemperatureGivesItsDistribution) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, 0.0f, 1.0f};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 1234;
    constexpr int kDraws = 20000;
    std::vector<double> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) {
      counts[static_cast<size_t>(sample_one(logits, params, static_cast<uint32_t>(i)).token)] += 1;
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    double chi_square = 0;
    for (size_t id = 0; id < logits.size(); ++id) {
      const double expected = kDraws * std::exp(logits[id] / temperature) / total;
      chi_square += (counts[id] - expected) * (counts[id] - expected) / expected;
    }
    EXPECT_LT(chi_square, 18.5) << "4 degrees of freedom: beyond 18.5 once in a thousand seeds";
  }
}

TEST(Sampler, ARowIsChosenTheSameInAnyCompany) {
  CpuDevice device(Isa::kBaseline);
  ThreadPool pool(2);
  Arena arena;
  ExecContext ctx{device, pool, arena, {}};
  SamplingParams params;
  params.seed = 5;
  std::vector<float> logits(3 * 100);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 37 % 101) * 0.05f;
  const std::vector<SampleRow> rows = {{&params, 7, 0}, {&params, 8, 1}, {&params, 7, 2}};
  std::vector<SampleOutput> together(3);
  sample(ctx, Tensor(logits.data(), DType::kF32, 3, 100), rows, together);
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<SampleOutput> alone(1);
    sample(ctx, Tensor(logits.data(), DType::kF32, 3, 100),
           std::span(rows).subspan(static_cast<size_t>(row), 1), alone);
    EXPECT_EQ(alone[0].token, together[static_cast<size_t>(row)].token);
  }
}

}  // namespace
}  // namespace tinyvllm
