// What a request forbids, wishes and penalises, on logits small enough to do by hand. The reference
// is looked at directly; that the others do the same is agreement_test.cc's business.
#include "sample/reference/processors.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tinyvllm {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();
using Floats = std::vector<float>;

// Logits after processing, for an answer that follows a prompt.
Floats process(const SamplingParams& params, Floats logits, const std::vector<int32_t>& prompt,
               const std::vector<int32_t>& answer, const std::vector<int32_t>& end_ids = {}) {
  std::vector<int32_t> history = prompt;
  history.insert(history.end(), answer.begin(), answer.end());
  SampleRow row;
  row.params = &params;
  row.position = static_cast<uint32_t>(history.size());
  row.prompt_tokens = static_cast<uint32_t>(prompt.size());
  row.history = history;
  row.end_ids = end_ids;
  reference::process_logits(row, logits);
  return logits;
}

TEST(Processors, DefaultsChangeNothing) {
  EXPECT_EQ(process({}, {1, -2, 3}, {0, 1}, {2, 2}, {1}), (Floats{1, -2, 3}));
}

TEST(Processors, AllowedTokensAreAllThatIsLeft) {
  SamplingParams params;
  params.allowed_token_ids = {2, 0, 2};
  EXPECT_EQ(process(params, {1, 2, 3, 4}, {}, {}), (Floats{1, kOut, 3, kOut}));
}

TEST(Processors, ABadWordLosesItsLastTokenWhenTheRestIsThere) {
  SamplingParams params;
  params.bad_words_token_ids = {{0}, {1, 2}, {3, 1, 3}};
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {}, {}), (Floats{kOut, 1, 1, 1}));
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {}, {1}), (Floats{kOut, 1, kOut, 1}));
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {}, {3, 1}), (Floats{kOut, 1, kOut, kOut}));
  // The prompt may say what it likes.
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {3, 1}, {}), (Floats{kOut, 1, 1, 1}));
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {3}, {1}), (Floats{kOut, 1, kOut, 1}));
}

TEST(Processors, EndsWaitForMinTokens) {
  SamplingParams params;
  params.min_tokens = 2;
  params.stop_token_ids = {3};
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {0, 0, 0}, {0}, {1}), (Floats{1, kOut, 1, kOut}));
  EXPECT_EQ(process(params, {1, 1, 1, 1}, {0, 0, 0}, {0, 0}, {1}), (Floats{1, 1, 1, 1}));
}

TEST(Processors, ABiasIsAddedAndRevivesNothing) {
  SamplingParams params;
  params.logit_bias = {{0, 2.5f}, {2, -100}};
  params.bad_words_token_ids = {{0}};
  EXPECT_EQ(process(params, {1, 1, 1}, {}, {}), (Floats{kOut, 1, -99}));
}

TEST(Processors, RepetitionCountsPromptAndAnswer) {
  SamplingParams params;
  params.repetition_penalty = 2;
  EXPECT_EQ(process(params, {4, -4, 0, 4, 4}, {0, 0}, {1, 2}), (Floats{2, -8, 0, 4, 4}));
}

TEST(Processors, PresenceAndFrequencyCountTheAnswer) {
  SamplingParams params;
  params.frequency_penalty = 0.5;
  params.presence_penalty = 1;
  EXPECT_EQ(process(params, {4, 4, 4, 4}, {0, 3}, {1, 1, 2, 1}), (Floats{4, 1.5, 2.5, 4}));
}

TEST(Processors, RepetitionComesBeforeFrequencyAndAfterBias) {
  SamplingParams params;
  params.logit_bias = {{0, 1}};
  params.repetition_penalty = 2;
  params.frequency_penalty = 1;
  EXPECT_EQ(process(params, {3}, {}, {0}), (Floats{(3 + 1) / 2.0f - 1}));
}

// a b c c b c y a b c: "c" would make abc into abcc, "b" c into cb, "y" bc into bcy.
TEST(Processors, DryGrowsWithTheRepeatThatATokenExtends) {
  const int a = 0, b = 1, c = 2, y = 3;
  SamplingParams params;
  params.dry_multiplier = 0.5;
  params.dry_base = 2;
  params.dry_allowed_length = 1;
  const std::vector<int32_t> tokens = {a, b, c, c, b, c, y, a, b, c};
  EXPECT_EQ(process(params, {9, 9, 9, 9, 9}, {}, tokens),
            (Floats{9, 9 - 0.5f, 9 - 0.5f * 4, 9 - 0.5f * 2, 9}));
  params.dry_allowed_length = 2;
  EXPECT_EQ(process(params, {9, 9, 9, 9, 9}, {}, tokens), (Floats{9, 9, 9 - 1.0f, 9 - 0.5f, 9}));
  // Only the last six tokens: the first abc is out of sight.
  params.dry_penalty_last_n = 6;
  EXPECT_EQ(process(params, {9, 9, 9, 9, 9}, {}, tokens), (Floats{9, 9, 9, 9 - 0.5f, 9}));
  params.dry_penalty_last_n = 0;
  EXPECT_EQ(process(params, {9, 9, 9, 9, 9}, {}, tokens), (Floats{9, 9, 9, 9, 9}));
}

TEST(Processors, DryDoesNotReachBackOverABreaker) {
  const int a = 0, b = 1, c = 2, y = 3;
  SamplingParams params;
  params.dry_multiplier = 1;
  params.dry_base = 2;
  params.dry_allowed_length = 1;
  params.dry_penalty_last_n = -1;
  const std::vector<int32_t> tokens = {a, b, c, c, b, c, y, a, b, c};
  params.dry_sequence_breaker_ids = {a};  // two tokens follow the last a
  EXPECT_EQ(process(params, {9, 9, 9, 9}, {}, tokens), (Floats{9, 8, 9 - 2.0f, 9 - 2.0f}));
  params.dry_sequence_breaker_ids = {y};  // itself never penalised; three tokens follow it
  EXPECT_EQ(process(params, {9, 9, 9, 9}, {}, tokens), (Floats{9, 8, 9 - 4.0f, 9}));
  params.dry_sequence_breaker_ids = {c};
  EXPECT_EQ(process(params, {9, 9, 9, 9}, {}, tokens), (Floats{9, 9, 9, 9}));
}

TEST(Processors, DryStaysFiniteHoweverLongTheRepeat) {
  SamplingParams params;
  params.dry_multiplier = 100;
  params.dry_base = 100;
  params.dry_penalty_last_n = -1;
  const Floats logits = process(params, {9, 9}, {}, std::vector<int32_t>(3000, 0));
  EXPECT_FALSE(std::isnan(logits[0]));
  EXPECT_LT(logits[0], -1e37f);
  EXPECT_EQ(logits[1], 9);
}

TEST(Processors, IdsOutsideTheVocabularyChangeNothing) {
  SamplingParams params;
  params.repetition_penalty = 2;
  params.frequency_penalty = params.presence_penalty = 1;
  params.dry_multiplier = 1;
  params.dry_allowed_length = 0;
  params.logit_bias = {{7, 1}, {-3, 1}};
  params.bad_words_token_ids = {{7}, {-1}};
  params.stop_token_ids = {-1, 9};
  params.min_tokens = 9;
  EXPECT_EQ(process(params, {1, 1}, {-1, 7}, {5, -2, 5, -2}, {1 << 30}), (Floats{1, 1}));
}

}  // namespace
}  // namespace tinyvllm
