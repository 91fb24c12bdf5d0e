// Greedy is exact, logprobs are the model's own, rows that are no distribution say so, and a row is
// chosen alike in any company.
#include "sample/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>

#include "tests/sample/implementations.h"

namespace tinyvllm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

SamplingParams seeded(uint64_t seed) {
  SamplingParams params;
  params.seed = seed;
  return params;
}

SampleRow row_of(const SamplingParams& params) {
  SampleRow row;
  row.params = &params;
  return row;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  const SamplingParams params = greedy();
  for (const Implementation& impl : implementations()) {
    EXPECT_EQ(impl.sample({1, 3, 3, 2}, row_of(params)).token, 1) << impl.name;
    for (const size_t size : {1, 7, 8, 255, 256, 257, 1000}) {
      std::vector<float> logits(size, -1.0f);
      logits[size - 1] = 5;
      EXPECT_EQ(impl.sample(logits, row_of(params)).token, static_cast<int>(size) - 1) << impl.name;
      logits[size / 2] = 5;
      EXPECT_EQ(impl.sample(logits, row_of(params)).token, static_cast<int>(size) / 2) << impl.name;
    }
  }
}

TEST(Sampler, LogprobsAreTheModelsOwn) {
  const std::vector<float> logits = {1, 3, 3, 2, -kInf};
  SamplingParams params = seeded(1);
  params.logprobs = 3;
  params.temperature = 0.5;  // none of these changes what the model thought
  params.top_k = 1;
  params.logit_bias = {{3, 50}};
  const double total = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  for (const Implementation& impl : implementations()) {
    const SampleOutput out = impl.sample(logits, row_of(params));
    EXPECT_EQ(out.token, 3);
    EXPECT_NEAR(out.logprob, 2 - std::log(total), 1e-6) << impl.name;
    ASSERT_EQ(out.top.size(), 3u) << impl.name;
    const int32_t likeliest[] = {1, 2, 3};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(out.top[i].token, likeliest[i]) << impl.name;
      EXPECT_NEAR(out.top[i].logprob, logits[static_cast<size_t>(likeliest[i])] - std::log(total),
                  1e-6);
    }
    EXPECT_EQ(impl.score(logits, {0, 3, 1}).logprob, out.logprob);
    EXPECT_EQ(impl.score(logits, {0, 3, 1}).top.size(), 1u);
    EXPECT_EQ(impl.score(logits, {0, 4, 9}).logprob, -kInf);
    EXPECT_EQ(impl.score(logits, {0, 4, 9}).top.size(), 5u);
  }
}

TEST(Sampler, LogprobsOfALargeVocabularyAreAccurate) {
  std::vector<float> logits(50001);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -12 + 11 * std::sin(static_cast<float>(i * i % 7919));
  }
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  for (const Implementation& impl : implementations()) {
    const SampleOutput out = impl.score(logits, {0, 123, 0});
    EXPECT_NEAR(out.logprob, logits[123] - std::log(total), 2e-6) << impl.name;
  }
}

TEST(Sampler, RowsThatAreNotNumbersChooseNothing) {
  for (const Implementation& impl : implementations()) {
    for (const SamplingParams& params : {greedy(), seeded(1)}) {
      const SampleRow row = row_of(params);
      EXPECT_EQ(impl.sample({1, kNan, 2}, row).token, kNotNumbers) << impl.name;
      EXPECT_EQ(impl.sample({kNan}, row).token, kNotNumbers) << impl.name;
      EXPECT_EQ(impl.sample({-kInf, -kInf}, row).token, kNotNumbers) << impl.name;
      EXPECT_EQ(impl.sample({1, kInf}, row).token, kNotNumbers) << impl.name;
      EXPECT_EQ(impl.sample({-kInf, 0}, row).token, 1) << impl.name;
      for (size_t at = 0; at < 600; at += 13) {
        std::vector<float> logits(600, 1.0f);
        logits[at] = kNan;
        ASSERT_EQ(impl.sample(logits, row).token, kNotNumbers) << impl.name << " NaN at " << at;
      }
    }
    EXPECT_EQ(impl.score({1, kNan}, {0, 0, 1}).token, kNotNumbers) << impl.name;
  }
}

TEST(Sampler, ARequestThatForbidsEverythingIsToldSo) {
  for (const Implementation& impl : implementations()) {
    for (SamplingParams params : {greedy(), seeded(1)}) {
      params.bad_words_token_ids = {{0}, {1}};
      EXPECT_EQ(impl.sample({1, 2}, row_of(params)).token, kNothingAllowed) << impl.name;
      params.allowed_token_ids = {1};
      params.bad_words_token_ids.clear();
      EXPECT_EQ(impl.sample({1, 2}, row_of(params)).token, 1) << impl.name;
      EXPECT_EQ(impl.sample({1, -kInf}, row_of(params)).token, kNothingAllowed) << impl.name;
    }
  }
}

TEST(Sampler, ExtremeLogitsAndTemperaturesStillChoose) {
  const float max = std::numeric_limits<float>::max();
  for (const Implementation& impl : implementations()) {
    for (const double temperature : {1e-300, 0.01, 1.0, 100.0}) {
      SamplingParams params = seeded(3);
      params.temperature = temperature;
      EXPECT_EQ(impl.sample({-max, max, -max}, row_of(params)).token, 1) << impl.name;
      EXPECT_EQ(impl.sample({-max, -kInf, -max / 2}, row_of(params)).token, 2) << impl.name;
      EXPECT_EQ(impl.sample({-1e-40f}, row_of(params)).token, 0) << impl.name;
    }
  }
}

TEST(Sampler, TopKOfOneIsGreedy) {
  SamplingParams params = seeded(3);
  params.top_k = 1;
  std::vector<float> logits(1000, 1.0f);
  logits[700] = logits[300] = 2;
  for (const Implementation& impl : implementations()) {
    for (uint32_t position = 0; position < 50; ++position) {
      SampleRow row = row_of(params);
      row.position = position;
      EXPECT_EQ(impl.sample(logits, row).token, 300) << impl.name;
    }
  }
}

TEST(Sampler, AnswersOfOneRequestDiffer) {
  const SamplingParams params = seeded(11);
  const std::vector<float> logits(5000, 0.0f);
  for (const Implementation& impl : implementations()) {
    std::set<int32_t> tokens;
    SampleRow row = row_of(params);
    for (row.answer = 0; row.answer < 8; ++row.answer)
      tokens.insert(impl.sample(logits, row).token);
    EXPECT_GE(tokens.size(), 7u) << impl.name;
  }
}

TEST(Sampler, ARowIsChosenAlikeInAnyCompany) {
  constexpr int64_t kRows = 13, kVocabulary = 777;
  std::vector<float> logits(kRows * kVocabulary);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 37 % 101) * 0.05f;
  std::vector<SamplingParams> params(kRows, seeded(5));
  params[1].top_p = 0.7;
  params[2].top_k = 11;
  params[3].temperature = 0;
  params[4].min_p = 0.3;
  params[5].typical_p = 0.4;
  params[6].logprobs = 5;
  std::vector<SampleRow> rows;
  for (int64_t i = 0; i < kRows; ++i) {
    SampleRow row = row_of(params[static_cast<size_t>(i)]);
    row.logit_row = i % 7;  // rows may share logits
    row.position = static_cast<uint32_t>(100 + i);
    rows.push_back(row);
  }
  const Tensor tensor = tensor_of(logits, kRows);
  TestDevice two_threads(supported_isas().back(), 2);
  TestDevice one_thread(Isa::kBaseline, 1);
  std::vector<SampleOutput> together(rows.size()), alone(1);
  ExecContext many = two_threads.context(tensor);
  sample(many, tensor, rows, together);
  for (size_t i = 0; i < rows.size(); ++i) {
    ExecContext one = one_thread.context(tensor);
    sample(one, tensor, {&rows[i], 1}, alone);
    EXPECT_EQ(alone[0].token, together[i].token) << "row " << i;
    EXPECT_EQ(alone[0].logprob, together[i].logprob) << "row " << i;
  }
}

}  // namespace
}  // namespace tinyvllm
