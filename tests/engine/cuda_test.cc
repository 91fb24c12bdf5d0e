// The engine's promise on a card with --deterministic: a request's tokens do not depend on what
// runs beside it, on how its prompt is cut or cached, on block sizes or steps in flight, nor on a
// preemption. And without it: a request alone is the same work whether a step is submitted ahead or
// not.
#include "tests/engine/determinism.h"

namespace tinyvllm {
namespace {

class CudaEngine : public Determinism {
 protected:
  void SetUp() override {
    const auto runtime = Runtime::create(device(1));
    if (!runtime.ok()) GTEST_SKIP() << runtime.message();
  }
  RuntimeOptions device(int threads) const override {
    RuntimeOptions options;
    options.threads = threads;
    options.device = DeviceKind::kCuda;
    options.cuda.deterministic = deterministic_;
    return options;
  }
  std::string dtype() const override { return "F16"; }
  std::string kv_cache_dtype() const override { return kv_cache_dtype_; }
  int answer_tokens() const override { return 24; }
  bool sees_logits() const override { return false; }

  bool deterministic_ = true;
  std::string kv_cache_dtype_ = "f16";
};

TEST_P(CudaEngine, DeterministicTokensDoNotDependOnChunksBlocksDepthAndCompany) {
  expect_same_in_every_setting({1});
}

TEST_P(CudaEngine, NorDoTheyWithACacheOfBytes) {
  kv_cache_dtype_ = "int8";
  expect_same_in_every_setting({1});
}

TEST_P(CudaEngine, NorOnAPrefixHitOfAnyLength) { expect_same_after_prefix_hits(); }

TEST_P(CudaEngine, NorOnAPreemption) { expect_same_after_preemptions(); }

TEST_P(CudaEngine, DISABLED_EverythingAtOnce) { expect_same_in_all_settings_at_once({1}); }

TEST_P(CudaEngine, AGreedyAnswerIsTheSameWithAStepSubmittedAhead) {
  deterministic_ = false;
  std::vector<Tokens> answers;
  for (const int depth : {0, 1}) {
    const auto engine = load({.name = "alone", .depth = depth});
    ASSERT_NE(engine, nullptr);
    const RequestId id = engine->add_request(prompt(1, prompt_length()), params(0)).value();
    answers.push_back(run(*engine, {id})[id].tokens);
  }
  EXPECT_EQ(answers[0].size(), 24u);
  EXPECT_EQ(answers[0], answers[1]);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaEngine, testing::ValuesIn(kGoldenModels),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(RealModels, CudaEngine, testing::Values("smollm2"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tinyvllm
