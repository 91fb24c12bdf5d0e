// A refused field is named with its value and its range; a model's defaults come under a request's.
#include "core/sampling_params.h"

#include <cmath>
#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

struct Refusal {
  const char* message;
  void (*spoil)(SamplingParams&);
};

const Refusal kRefusals[] = {
    {"n: expected 1 to 128, found 0", [](SamplingParams& p) { p.n = 0; }},
    {"n: expected 1 to 128, found 129", [](SamplingParams& p) { p.n = 129; }},
    {"temperature: expected 0 to 100, found -0.5", [](SamplingParams& p) { p.temperature = -0.5; }},
    {"temperature: expected 0 to 100, found nan", [](SamplingParams& p) { p.temperature = NAN; }},
    {"temperature: expected 0 to 100, found inf",
     [](SamplingParams& p) { p.temperature = INFINITY; }},
    {"top_k: expected at least -1 (0 or -1 for all tokens), found -2",
     [](SamplingParams& p) { p.top_k = -2; }},
    {"top_p: expected more than 0, at most 1, found 0", [](SamplingParams& p) { p.top_p = 0; }},
    {"top_p: expected more than 0, at most 1, found 1.0000001",
     [](SamplingParams& p) { p.top_p = 1.0000001; }},
    {"min_p: expected 0 to 1, found 2", [](SamplingParams& p) { p.min_p = 2; }},
    {"typical_p: expected more than 0, at most 1, found nan",
     [](SamplingParams& p) { p.typical_p = NAN; }},
    {"presence_penalty: expected -2 to 2, found 3",
     [](SamplingParams& p) { p.presence_penalty = 3; }},
    {"frequency_penalty: expected -2 to 2, found -3",
     [](SamplingParams& p) { p.frequency_penalty = -3; }},
    {"repetition_penalty: expected 0.01 to 100, found 0",
     [](SamplingParams& p) { p.repetition_penalty = 0; }},
    {"dry_multiplier: expected 0 to 100, found -1",
     [](SamplingParams& p) { p.dry_multiplier = -1; }},
    {"dry_base: expected 0 to 100, found inf", [](SamplingParams& p) { p.dry_base = INFINITY; }},
    {"dry_allowed_length: expected 0 to 1024, found 1025",
     [](SamplingParams& p) { p.dry_allowed_length = 1025; }},
    {"dry_penalty_last_n: expected at least -1 (-1 for all tokens), found -2",
     [](SamplingParams& p) { p.dry_penalty_last_n = -2; }},
    {"dry_sequence_breakers[1]: expected at least one character, found none",
     [](SamplingParams& p) {
       p.dry_sequence_breakers = {"\n", ""};
     }},
    {"xtc_probability: expected 0 to 1, found 1.5",
     [](SamplingParams& p) { p.xtc_probability = 1.5; }},
    {"xtc_threshold: expected 0 to 1, found -0.1",
     [](SamplingParams& p) { p.xtc_threshold = -0.1; }},
    {"logprobs: expected 0 to 20, found 21", [](SamplingParams& p) { p.logprobs = 21; }},
    {"prompt_logprobs: expected 0 to 20, found -1",
     [](SamplingParams& p) { p.prompt_logprobs = -1; }},
    {"max_tokens: expected at least 1, found 0", [](SamplingParams& p) { p.max_tokens = 0; }},
    {"min_tokens: expected 0 to max_tokens = 16, found 17",
     [](SamplingParams& p) { p.min_tokens = 17; }},
    {"stop[0]: expected at least one character, found none",
     [](SamplingParams& p) { p.stop = {""}; }},
    {"stop_token_ids: expected token ids from 0 to 999, found 1000",
     [](SamplingParams& p) { p.stop_token_ids = {1000}; }},
    {"logit_bias: expected token ids from 0 to 999, found -7",
     [](SamplingParams& p) {
       p.logit_bias = {{-7, 1}};
     }},
    {"logit_bias: expected -100 to 100, found 101",
     [](SamplingParams& p) {
       p.logit_bias = {{7, 101}};
     }},
    {"allowed_token_ids: expected at least one token id, found none",
     [](SamplingParams& p) { p.allowed_token_ids.emplace(); }},
    {"allowed_token_ids: expected token ids from 0 to 999, found 5000",
     [](SamplingParams& p) {
       p.allowed_token_ids = {1, 5000};
     }},
    {"bad_words[0]: expected at least one character, found none",
     [](SamplingParams& p) { p.bad_words = {""}; }},
    {"bad_words: expected at most 1000, found 1001",
     [](SamplingParams& p) { p.bad_words.assign(1001, "word"); }},
    {"bad_words: expected words of at least one token, found none",
     [](SamplingParams& p) { p.bad_words_token_ids = {{}}; }},
    {"bad_words: expected token ids from 0 to 999, found 1001",
     [](SamplingParams& p) {
       p.bad_words_token_ids = {{3, 1001}};
     }},
};

TEST(SamplingParams, RefusesByFieldValueAndRange) {
  const SamplingLimits limits{.vocab_size = 1000};
  for (const Refusal& refusal : kRefusals) {
    SamplingParams params;
    EXPECT_TRUE(validate(params, limits).ok());
    refusal.spoil(params);
    EXPECT_EQ(validate(params, limits).message(), refusal.message);
  }
}

TEST(SamplingParams, EndsOfRangesAreAllowed) {
  SamplingParams params;
  params.n = 128;
  params.temperature = 0;
  params.top_k = -1;
  params.min_p = params.xtc_probability = params.xtc_threshold = 1;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.logprobs = params.prompt_logprobs = 20;
  params.max_tokens = params.min_tokens = kNoTokenLimit;
  params.logit_bias = {{999, -100}, {0, 100}};
  params.stop_token_ids = {999};
  const Status status = validate(params, {.vocab_size = 1000});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SamplingParams, AModelsDefaultsReplaceOurs) {
  SamplingDefaults model;
  EXPECT_EQ(default_params(model).value().temperature, 1.0);
  model.temperature = 0.6;
  model.top_k = 20;
  const SamplingParams params = default_params(model).value();
  EXPECT_EQ(params.temperature, 0.6);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.top_p, 1.0);
  EXPECT_EQ(params.max_tokens, 16);
}

TEST(SamplingParams, AModelsBadDefaultsAreTheModelsFault) {
  SamplingDefaults model;
  model.top_p = 1.5;
  EXPECT_EQ(default_params(model).message(),
            "generation_config: top_p: expected more than 0, at most 1, found 1.5");
  model.top_p = 0.9;
  model.top_k = int64_t{-1} << 40;
  EXPECT_FALSE(default_params(model).ok());
  model.top_k = int64_t{1} << 40;
  EXPECT_TRUE(default_params(model).ok());
}

}  // namespace
}  // namespace tinyvllm
