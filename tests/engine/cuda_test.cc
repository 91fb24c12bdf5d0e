// The engine's promise on a card with --deterministic: a request's tokens do not depend on what
// runs beside it, on how its prompt is cut, on block sizes or steps in flight. And without it: a
// request alone is the same work whether a step is submitted ahead or not.
#include <gtest/gtest.h>

#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

using Tokens = std::vector<int32_t>;

struct Setting {
  std::string name;
  int chunk = 4096;
  int block_size = 16;
  int depth = 0;
  int others = 0;
};

class CudaEngine : public testing::TestWithParam<std::string> {
 protected:
  void open(bool deterministic) {
    RuntimeOptions options;
    options.threads = 1;
    options.device = DeviceKind::kCuda;
    options.cuda.deterministic = deterministic;
    auto runtime = Runtime::create(options);
    if (!runtime.ok()) GTEST_SKIP() << runtime.message();
    runtime_ = std::move(runtime.value());
  }

  std::unique_ptr<LLMEngine> load(const Setting& setting) {
    EngineOptions options = tiny_options();
    options.dtype = "F16";
    options.max_num_batched_tokens = setting.chunk;
    options.max_num_seqs = 40;
    options.block_size = setting.block_size;
    options.depth = setting.depth;
    options.max_model_len = 256;
    options.kv_cache_memory = size_t{64} << 20;
    return load_tiny(*runtime_, options, GetParam());
  }

  // Greedy, tame, and wild with every past token counting.
  static SamplingParams params(int which) {
    SamplingParams params;
    params.seed = 11;
    params.max_tokens = 24;
    params.ignore_eos = true;
    params.temperature = std::vector{0.0, 0.7, 1.8}[static_cast<size_t>(which)];
    if (which == 1) params.top_p = 0.9;
    if (which == 2) params.repetition_penalty = 1.2;
    return params;
  }

  static void add_others(LLMEngine& engine, int from, int to) {
    for (int i = from; i < to; ++i) {
      SamplingParams sampling = params(i % 3);
      sampling.seed = static_cast<uint64_t>(100 + i);
      sampling.max_tokens = 1 + i * 5 % 30;
      EXPECT_TRUE(engine.add_request(tiny_prompt(i + 2, 1 + i * 37 % 90), sampling).ok());
    }
  }

  // The tokens of the watched requests, by number; some of the company comes before each.
  static std::vector<Tokens> run(LLMEngine& engine, const std::vector<int>& watched, int others) {
    std::vector<RequestId> ids;
    int added = 0;
    for (size_t i = 0; i < watched.size(); ++i) {
      const int until = others * static_cast<int>(i + 1) / static_cast<int>(watched.size());
      add_others(engine, added, until);
      added = until;
      ids.push_back(engine.add_request(tiny_prompt(1, 75), params(watched[i])).value());
    }
    std::vector<Tokens> tokens(watched.size());
    for (const RequestOutput& output : engine.run()) {
      EXPECT_EQ(output.error, "");
      const auto found = std::find(ids.begin(), ids.end(), output.request);
      if (found != ids.end()) tokens[static_cast<size_t>(found - ids.begin())] = token_ids(output);
    }
    return tokens;
  }

  std::unique_ptr<Runtime> runtime_;
};

TEST_P(CudaEngine, DeterministicTokensDoNotDependOnChunksBlocksDepthAndCompany) {
  open(true);
  if (IsSkipped()) return;
  std::vector<Tokens> expected;
  {
    const auto engine = load({"alone"});
    ASSERT_NE(engine, nullptr);
    for (int which = 0; which < 3; ++which) expected.push_back(run(*engine, {which}, 0)[0]);
  }
  ASSERT_EQ(expected[0].size(), 24u);
  ASSERT_NE(expected[0], expected[2]);
  std::vector<Setting> settings;
  for (const int chunk : {1, 7, 16, 64}) settings.push_back({str_cat("chunks of ", chunk), chunk});
  for (const int block : {8, 32}) settings.push_back({str_cat("blocks of ", block), 4096, block});
  for (const int depth : {0, 1}) {
    settings.push_back({str_cat("a crowd, depth ", depth), 100, 16, depth, 31});
  }
  for (const Setting& setting : settings) {
    const auto engine = load(setting);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(run(*engine, {0, 1, 2}, setting.others), expected) << setting.name;
  }
}

TEST_P(CudaEngine, AGreedyAnswerIsTheSameWithAStepSubmittedAhead) {
  open(false);
  if (IsSkipped()) return;
  std::vector<Tokens> answers;
  for (const int depth : {0, 1}) {
    const auto engine = load({.name = "alone", .depth = depth});
    ASSERT_NE(engine, nullptr);
    answers.push_back(run(*engine, {0}, 0)[0]);
  }
  EXPECT_EQ(answers[0].size(), 24u);
  EXPECT_EQ(answers[0], answers[1]);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaEngine,
                         testing::Values("gemma3", "llama", "mistral", "olmo2", "phi3", "qwen2",
                                         "qwen3", "qwen3moe"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tinyvllm
