// Which tokens end an answer.
#include "text/end_tokens.h"

#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

using Ids = std::vector<int32_t>;

TEST(EndTokens, AreThoseThatTheFilesNameAndThoseSpelledSo) {
  EndTokens ends;
  for (const int64_t id : {7, 3, 7, -1, 100, 99}) ends.add_named(id);
  ends.add_if_spelled("<|eot_id|>", 9);
  ends.add_if_spelled("<|eom_id|>", 8);
  ends.add_if_spelled("<|im_start|>", 10);
  EXPECT_EQ(ends.tidy(100), (Ids{3, 7, 8, 9, 99}));
}

TEST(EndTokens, TheEndOfAMessageEndsAnAnswerOnlyWhereNothingElseDoes) {
  EndTokens phi3;
  phi3.add_if_spelled("<|end|>", 7);
  phi3.add_if_spelled("<|endoftext|>", 0);
  EXPECT_EQ(phi3.tidy(10), (Ids{0, 7}));
  EndTokens gpt_oss;
  gpt_oss.add_if_spelled("<|end|>", 7);
  gpt_oss.add_if_spelled("<|call|>", 8);
  gpt_oss.add_if_spelled("<|return|>", 2);
  EXPECT_EQ(gpt_oss.tidy(10), (Ids{2, 8}));
  gpt_oss.add_named(7);
  EXPECT_EQ(gpt_oss.tidy(10), (Ids{2, 7, 8}));
}

}  // namespace
}  // namespace tinyvllm
