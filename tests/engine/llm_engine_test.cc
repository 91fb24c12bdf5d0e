// The engine's promise on the real model: an answer does not depend on its company, on how its
// prompt is cut, on block sizes, threads, cached prefixes, preemption or steps in flight.
#include "engine/llm_engine.h"

#include <gtest/gtest.h>

#include "tests/engine/smollm2.h"

namespace tinyvllm {
namespace {

struct Setting {
  const char* name;
  EngineOptions options;
  int threads = 2;
};

EngineOptions small() {
  EngineOptions options;
  options.max_model_len = 512;
  options.kv_cache_memory = size_t{64} << 20;
  return options;
}

using Tokens = std::vector<int32_t>;

Tokens prompt_of(int seed, int length) {
  Tokens prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(100 + (seed * 7919 + i * 31) % 40000);
  return prompt;
}

SamplingParams seeded(uint64_t seed, int max_tokens) {
  SamplingParams params;
  params.temperature = 0.8;
  params.seed = seed;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  params.repetition_penalty = 1.2;  // makes a choice depend on every token before it
  params.frequency_penalty = 0.3;
  return params;
}

// Runs everything that was added; the tokens of each request, in the order of their ids.
std::map<RequestId, Tokens> run(LLMEngine& engine) {
  std::map<RequestId, Tokens> answers;
  while (engine.has_work()) {
    for (const RequestOutput& output : engine.step()) {
      EXPECT_EQ(output.error, "");
      for (const SampledToken& token : output.tokens) {
        answers[output.request * 100 + output.answer].push_back(token.token);
      }
    }
  }
  return answers;
}

class Engine : public testing::Test {
 protected:
  std::unique_ptr<LLMEngine> load(const EngineOptions& options, int threads = 2) {
    runtimes_.push_back(Runtime::create({threads}).value());
    auto engine = LLMEngine::load(*runtimes_.back(), smollm2_path(), options);
    EXPECT_TRUE(engine.ok()) << engine.message();
    return std::move(engine).value();
  }
  std::vector<std::unique_ptr<Runtime>> runtimes_;
};

TEST_F(Engine, AnAnswerDoesNotDependOnAnythingAroundIt) {
  const Tokens prompt = prompt_of(1, 75);
  const auto alone = load(small());
  ASSERT_TRUE(alone->add_request(prompt, seeded(5, 12)).ok());
  const Tokens expected = run(*alone).begin()->second;
  ASSERT_EQ(expected.size(), 12u);

  std::vector<Setting> settings;
  for (const int chunk : {1, 7, 64}) {
    settings.push_back({"chunks", small()});
    settings.back().options.max_num_batched_tokens = chunk;
  }
  for (const int block : {8, 32}) {
    settings.push_back({"blocks", small()});
    settings.back().options.block_size = block;
  }
  settings.push_back({"one thread", small(), 1});
  settings.push_back({"a step in flight", small()});
  settings.back().options.depth = 1;
  settings.push_back({"hardly any memory", small()});
  settings.back().options.kv_cache_memory = 140 * 24000;
  settings.back().options.max_model_len = 100;
  for (const Setting& setting : settings) {
    const auto engine = load(setting.options, setting.threads);
    for (int other = 2; other < 6; ++other) {
      ASSERT_TRUE(engine->add_request(prompt_of(other, 11 * other), seeded(1, 3 * other)).ok());
    }
    const RequestId id = engine->add_request(prompt, seeded(5, 12)).value();
    for (int other = 6; other < 9; ++other) {
      ASSERT_TRUE(engine->add_request(prompt_of(other, 7 * other), seeded(2, 2 * other)).ok());
    }
    EXPECT_EQ(run(*engine)[id * 100], expected) << setting.name;
    EXPECT_EQ(engine->stats().used_blocks, 0) << setting.name;
    if (setting.options.kv_cache_memory < 4000000) {
      EXPECT_GT(engine->stats().preemptions, 0u);
    }
  }
}

TEST_F(Engine, ACachedPrefixOfAnyLengthChangesNothing) {
  const auto engine = load(small());
  const Tokens prompt = prompt_of(3, 70);
  ASSERT_TRUE(engine->add_request(prompt, seeded(9, 6)).ok());
  const Tokens expected = run(*engine).begin()->second;
  for (const int shared : {16, 17, 40, 64, 69, 70}) {
    Tokens other(prompt.begin(), prompt.begin() + shared);
    other.resize(80, 1234);
    ASSERT_TRUE(engine->add_request(other, seeded(1, 2)).ok());
    run(*engine);
    const RequestId id = engine->add_request(prompt, seeded(9, 6)).value();
    int cached = 0;
    Tokens tokens;
    while (engine->has_work()) {
      for (const RequestOutput& output : engine->step()) {
        cached = output.cached_tokens;
        for (const SampledToken& token : output.tokens) tokens.push_back(token.token);
        EXPECT_EQ(output.request, id);
      }
    }
    EXPECT_EQ(cached, 64);
    EXPECT_EQ(tokens, expected) << shared;
  }
}

TEST_F(Engine, SeveralAnswersAreThoseOfTheirSeeds) {
  const auto engine = load(small());
  SamplingParams params = seeded(4, 8);
  params.n = 3;
  ASSERT_TRUE(engine->add_request(prompt_of(4, 37), params).ok());
  const auto together = run(*engine);
  ASSERT_EQ(together.size(), 3u);
  const auto again = load(small());
  params.n = 1;
  ASSERT_TRUE(again->add_request(prompt_of(4, 37), params).ok());
  EXPECT_EQ(run(*again).begin()->second, together.begin()->second) << "the first is the only one's";
  EXPECT_NE(together.begin()->second, std::next(together.begin())->second);
}

TEST_F(Engine, AStopStringEndsAnAnswerBeforeItself) {
  const auto engine = load(small());
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = 64;
  params.stop = {", 8"};
  ASSERT_TRUE(engine->add_request(engine->tokenizer().encode("1, 2, 3, 4,", {}), params).ok());
  std::string text;
  RequestOutput last;
  while (engine->has_work()) {
    for (RequestOutput& output : engine->step()) {
      text += output.text;
      last = std::move(output);
    }
  }
  EXPECT_EQ(text, " 5, 6, 7");
  EXPECT_EQ(last.finish, FinishReason::kStop);
  EXPECT_EQ(last.stop_string, ", 8");
  EXPECT_EQ(engine->stats().used_blocks, 0);
}

TEST_F(Engine, AnAbortedRequestLeavesNothingBehind) {
  const auto engine = load(small());
  const RequestId id = engine->add_request(prompt_of(1, 50), seeded(1, 100)).value();
  ASSERT_TRUE(engine->add_request(prompt_of(2, 20), seeded(1, 5)).ok());
  for (int i = 0; i < 3; ++i) engine->step();
  engine->abort(id);
  for (const auto& [answer, tokens] : run(*engine)) EXPECT_NE(answer / 100, id);
  EXPECT_EQ(engine->stats().used_blocks, 0);
}

}  // namespace
}  // namespace tinyvllm
