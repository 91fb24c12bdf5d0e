// Every implementation chooses the same token as the reference, with the same logprobs to the bit:
// thousands of random rows of many shapes, under random parameters in random combinations.
#include <gtest/gtest.h>

#include "tests/sample/generator.h"
#include "tests/sample/implementations.h"

namespace tinyvllm {
namespace {

void expect_agreement(uint32_t seed, int vocabulary, int rows) {
  Generator generator(seed);
  const std::vector<Implementation> all = implementations();
  const std::vector<int32_t> end_ids = {vocabulary / 2, vocabulary - 1};
  for (int i = 0; i < rows; ++i) {
    const std::vector<float> logits = generator.logits(static_cast<size_t>(vocabulary));
    const SamplingParams params = generator.params(vocabulary);
    const std::vector<int32_t> history = generator.history(vocabulary);
    SampleRow row;
    row.params = &params;
    row.history = history;
    row.position = static_cast<uint32_t>(history.size());
    row.prompt_tokens =
        static_cast<uint32_t>(generator.below(static_cast<int>(history.size()) + 1));
    row.answer = static_cast<uint32_t>(generator.below(3));
    row.end_ids = end_ids;
    const SampleOutput expected = all[0].sample(logits, row);
    for (size_t other = 1; other < all.size(); ++other) {
      const SampleOutput found = all[other].sample(logits, row);
      ASSERT_EQ(found.token, expected.token)
          << all[other].name << ", row " << i << " of " << vocabulary;
      ASSERT_EQ(found.logprob, expected.logprob) << all[other].name << ", row " << i;
      ASSERT_EQ(found.top.size(), expected.top.size()) << all[other].name << ", row " << i;
      for (size_t t = 0; t < found.top.size(); ++t) {
        ASSERT_EQ(found.top[t].token, expected.top[t].token) << all[other].name << ", row " << i;
        ASSERT_EQ(found.top[t].logprob, expected.top[t].logprob)
            << all[other].name << ", row " << i;
      }
    }
  }
}

TEST(Agreement, SmallVocabularies) {
  for (const int vocabulary : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 100}) {
    expect_agreement(static_cast<uint32_t>(vocabulary), vocabulary, 400);
  }
}

TEST(Agreement, VocabulariesOfAFewBlocks) {
  for (const int vocabulary : {255, 256, 257, 511, 1023, 2345}) {
    expect_agreement(static_cast<uint32_t>(vocabulary), vocabulary, 400);
  }
}

TEST(Agreement, VocabulariesOfManyBlocks) { expect_agreement(5, 20011, 100); }

}  // namespace
}  // namespace tinyvllm
