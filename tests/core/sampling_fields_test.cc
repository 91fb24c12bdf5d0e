// Fields by name: every one can be set from text, reads back, and refuses what it does not take.
#include "core/sampling_fields.h"

#include <gtest/gtest.h>
#include <set>

namespace tinyvllm {
namespace {

std::string set(SamplingParams& params, const char* name, std::vector<std::string> values) {
  const SamplingField* field = find_sampling_field(name);
  if (field == nullptr) return "no such field";
  return set_sampling_field(params, *field, values).message();
}

TEST(SamplingFields, AreSetFromText) {
  SamplingParams params;
  EXPECT_EQ(set(params, "temperature", {"0.25"}), "");
  EXPECT_EQ(set(params, "top_k", {"-1"}), "");
  EXPECT_EQ(set(params, "seed", {"18446744073709551615"}), "");
  EXPECT_EQ(set(params, "logprobs", {"0"}), "");
  EXPECT_EQ(set(params, "ignore_eos", {"true"}), "");
  EXPECT_EQ(set(params, "stop", {"a,b", "\n"}), "");
  EXPECT_EQ(set(params, "stop_token_ids", {"1, 2,3"}), "");
  EXPECT_EQ(set(params, "allowed_token_ids", {"7"}), "");
  EXPECT_EQ(set(params, "logit_bias", {"15:-100,16:2.5"}), "");
  EXPECT_EQ(params.temperature, 0.25);
  EXPECT_EQ(params.top_k, -1);
  EXPECT_EQ(params.seed, UINT64_MAX);
  EXPECT_EQ(params.logprobs, 0);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_EQ(params.stop, (std::vector<std::string>{"a,b", "\n"}));
  EXPECT_EQ(params.stop_token_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(params.allowed_token_ids, (std::vector<int32_t>{7}));
  ASSERT_EQ(params.logit_bias.size(), 2u);
  EXPECT_EQ(params.logit_bias[1].token, 16);
  EXPECT_EQ(params.logit_bias[1].bias, 2.5f);
}

TEST(SamplingFields, RefuseWhatTheyDoNotTake) {
  SamplingParams params;
  EXPECT_EQ(set(params, "temperature", {"warm"}), "temperature: expected a number, found 'warm'");
  EXPECT_EQ(set(params, "top_k", {"1.5"}), "top_k: expected a whole number, found '1.5'");
  EXPECT_NE(set(params, "seed", {"-1"}), "");
  EXPECT_NE(set(params, "max_tokens", {"99999999999"}), "");
  EXPECT_NE(set(params, "ignore_eos", {"maybe"}), "");
  EXPECT_NE(set(params, "stop_token_ids", {"1,,2"}), "");
  EXPECT_NE(set(params, "stop_token_ids", {"1,x"}), "");
  EXPECT_NE(set(params, "logit_bias", {"15"}), "");
  EXPECT_NE(set(params, "logit_bias", {"15:"}), "");
  EXPECT_EQ(params.temperature, SamplingParams().temperature);  // a refusal changes nothing
  EXPECT_TRUE(params.stop_token_ids.empty());
}

TEST(SamplingFields, HaveEachTheirOwnNameAndPlace) {
  std::set<std::string> names;
  SamplingParams defaults;
  for (const SamplingField& field : sampling_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    // What is set through one field shows in its own text and in no other.
    SamplingParams params;
    const bool flag = std::holds_alternative<bool SamplingParams::*>(field.member);
    const std::string now = sampling_field_text(defaults, field);
    const std::string value = flag ? (now == "true" ? "false" : "true") : "15:2";
    if (!set_sampling_field(params, field, std::vector{value}).ok()) {
      ASSERT_TRUE(set_sampling_field(params, field, std::vector<std::string>{"17"}).ok());
    }
    for (const SamplingField& other : sampling_fields()) {
      EXPECT_EQ(sampling_field_text(params, other) != sampling_field_text(defaults, other),
                &other == &field)
          << field.name << " " << other.name;
    }
    SamplingParams copy;
    copy_sampling_field(params, field, copy);
    EXPECT_EQ(sampling_field_text(copy, field), sampling_field_text(params, field));
  }
  EXPECT_EQ(names.size(), 29u);
}

}  // namespace
}  // namespace tinyvllm
