// The real model, end to end: another implementation chooses the same tokens, and no cutting of the
// prompt changes a single bit.
#include "tests/engine/smollm2.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "engine/llm_engine.h"
#include "engine/model_runner.h"
#include "model/registry.h"
#include "tests/data.h"

namespace tinyvllm {
namespace {

constexpr int kContext = 512;
constexpr int kBlockSize = 16;

// The model and a runner over it, fed by hand-made plans of one sequence.
class SmolLM2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(std::filesystem::exists(smollm2_path()))
        << "fetch it with: tools/get_model smollm2";
    auto files = ModelFiles::open(smollm2_path());
    ASSERT_TRUE(files.ok()) << files.message();
    files_ = std::move(files).value().release();
    for (const int threads : {1, 2})
      runtimes_.push_back(Runtime::create({threads}).value().release());
    auto model = load_model(*files_, runtimes_[0]->device(), runtimes_[1]->pool(), {});
    ASSERT_TRUE(model.ok()) << model.message();
    model_ = std::move(model).value().release();
  }
  static void TearDownTestSuite() {
    delete model_;
    for (Runtime* runtime : runtimes_) delete runtime;
    runtimes_.clear();
    delete files_;
  }

  static std::unique_ptr<ModelRunner> make_runner(int threads, int max_num_logits = 1) {
    RunnerConfig config;
    config.max_num_logits = max_num_logits;
    config.block_size = kBlockSize;
    config.num_blocks = {1 + kContext / kBlockSize};
    auto runner =
        ModelRunner::create(*runtimes_[static_cast<size_t>(threads - 1)], *model_, config);
    EXPECT_TRUE(runner.ok()) << runner.message();
    return std::move(runner).value();
  }

  // Feeds tokens[from, to) and gives the greedy choice after the last of them.
  static int32_t feed(ModelRunner& runner, const std::vector<int32_t>& tokens, size_t from,
                      size_t to) {
    SamplingParams greedy;
    greedy.temperature = 0;
    BlockTables tables(1);
    for (int block = kContext / kBlockSize; block >= 1; --block) tables[0].push_back(block);
    SequencePlan plan;
    plan.position = static_cast<int>(from);
    plan.num_tokens = static_cast<int>(to - from);
    plan.block_tables = &tables;
    plan.sample = true;
    plan.sampling = &greedy;
    StepPlan step;
    step.sequences = {plan};
    step.tokens.assign(tokens.begin() + static_cast<ptrdiff_t>(from),
                       tokens.begin() + static_cast<ptrdiff_t>(to));
    const StepResult result = runner.wait(runner.submit(step));
    return result.sampled.at(0).token;
  }

  static inline ModelFiles* files_ = nullptr;
  static inline Model* model_ = nullptr;
  static inline std::vector<Runtime*> runtimes_;  // with one thread, with two
};

// Where llama.cpp's first choice is ahead of its second by more than this, ours must be the same.
constexpr double kMargin = 0.05;

TEST_F(SmolLM2, ChoosesWhatLlamaCppChooses) {
  simdjson::dom::parser parser;
  simdjson::dom::element cases = parser.load(test_data("smollm2_continuations.json"));
  auto tokenizer = Tokenizer::create(files_->tokenizer());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.message();
  const auto runner = make_runner(2);
  int compared = 0;
  for (simdjson::dom::element item : cases) {
    const std::string prompt(item["prompt"].get_string().value());
    std::vector<int32_t> tokens;
    for (const int64_t id : item["prompt_ids"].get_array())
      tokens.push_back(static_cast<int32_t>(id));
    EXPECT_EQ(tokenizer.value()->encode(prompt, {true, true}), tokens) << prompt;

    size_t fed = 0;
    auto margin = item["margins"].get_array().begin();
    for (const int64_t expected : item["ids"].get_array()) {
      const int32_t chosen = feed(*runner, tokens, fed, tokens.size());
      fed = tokens.size();
      if (double(*margin) > kMargin) {
        EXPECT_EQ(chosen, expected)
            << prompt << " after " << tokens.size() << " tokens, margin " << double(*margin);
        compared += 1;
      }
      tokens.push_back(static_cast<int32_t>(expected));
      ++margin;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST_F(SmolLM2, LogitsAreTheSameBitsHoweverThePromptIsCut) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 150; ++i) tokens.push_back(100 + i * 31 % 40000);
  std::vector<float> whole;
  for (const int threads : {1, 2}) {
    const auto runner = make_runner(threads);
    std::vector<float> logits;
    runner->on_logits([&](const StepPlan&, const Tensor& rows) {
      logits.assign(rows.f32(), rows.f32() + rows.cols);
    });
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{64}, tokens.size()}) {
      for (size_t from = 0; from < tokens.size(); from += chunk) {
        feed(*runner, tokens, from, std::min(from + chunk, tokens.size()));
      }
      if (whole.empty()) whole = logits;
      EXPECT_EQ(std::memcmp(whole.data(), logits.data(), whole.size() * sizeof(float)), 0)
          << "chunks of " << chunk << ", " << threads << " threads";
    }
  }
}

TEST_F(SmolLM2, ScoresAPromptInAnyChunks) {
  const std::vector<int32_t> prompt = {504, 2365, 17, 4, 3575, 42, 198, 99, 1, 30000};
  SamplingParams params;
  params.temperature = 0;
  params.prompt_logprobs = 2;
  BlockTables tables(1);
  for (int block = 1; block <= kContext / kBlockSize; ++block) tables[0].push_back(block);

  std::vector<ScoredToken> whole;
  for (const int chunk : {10, 3, 1}) {
    const auto runner = make_runner(2, 10);
    std::vector<ScoredToken> scored;
    std::vector<double> expected;  // from the logits themselves
    for (int from = 0; from < 10; from += chunk) {
      SequencePlan plan;
      plan.position = from;
      plan.num_tokens = std::min(chunk, 10 - from);
      plan.block_tables = &tables;
      plan.all_logits = true;
      plan.sampling = &params;
      plan.history = prompt;
      plan.prompt_tokens = 10;
      StepPlan step;
      step.sequences = {plan};
      step.tokens.assign(prompt.begin() + from, prompt.begin() + from + plan.num_tokens);
      runner->on_logits([&](const StepPlan&, const Tensor& logits) {
        ASSERT_EQ(logits.rows, plan.num_tokens);
        for (int64_t row = 0; row < logits.rows && from + row + 1 < 10; ++row) {
          const float* x = logits.f32() + row * logits.stride;
          double total = 0;
          for (int64_t id = 0; id < logits.cols; ++id) total += std::exp(double{x[id]});
          const int32_t next = prompt[static_cast<size_t>(from + row + 1)];
          expected.push_back(x[next] - std::log(total));
        }
      });
      for (ScoredToken& token : runner->wait(runner->submit(step)).scored) {
        scored.push_back(std::move(token));
      }
    }
    ASSERT_EQ(scored.size(), 9u) << "nothing comes before the first token";
    for (size_t i = 0; i < scored.size(); ++i) {
      EXPECT_EQ(scored[i].position, static_cast<int>(i) + 1);
      EXPECT_EQ(scored[i].token, prompt[i + 1]);
      EXPECT_NEAR(scored[i].logprob, expected[i], 1e-5);
      EXPECT_EQ(scored[i].top.size(), 2u);
      EXPECT_EQ(scored[i].logprob, whole.empty() ? scored[i].logprob : whole[i].logprob);
    }
    if (whole.empty()) whole = scored;
  }
}

}  // namespace
}  // namespace tinyvllm
