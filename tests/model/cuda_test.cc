// Every architecture on the card beside the same on the CPU: the same weights, the same tokens, two
// devices. Halves carry 11 bits; a logit sums over a few dozen of such roundings, so the two are
// within 1% of the span of the logits, and agree on the token wherever the CPU is surer than that.
//
// With a cache of bytes one K or V in some thirty is close enough to the middle between two for the
// halves' 2^-12 to decide which it becomes, and a step is 2^-7 of the largest: as noise, that is a
// few of the halves' roundings more, for which there is another percent.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/model/harness.h"

namespace tinyvllm {
namespace {

constexpr float kTolerance = 0.01f;

class CudaModelTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Runtime> card(bool deterministic) {
    RuntimeOptions options;
    options.device = DeviceKind::kCuda;
    options.cuda.deterministic = deterministic;
    auto runtime = Runtime::create(options);
    return runtime.ok() ? std::move(runtime.value()) : nullptr;
  }

  static std::vector<Logits> run(Runtime& runtime, const std::string& path,
                                 const std::vector<Tokens>& texts, const std::vector<Step>& steps,
                                 DType kv_dtype = DType::kF16, int block_size = 16) {
    const LoadedModel loaded = load(runtime, path, {.max_model_len = 64, .kv_dtype = kv_dtype});
    return run_steps(runtime, *loaded.model, texts, steps, block_size);
  }

  std::vector<Tokens> texts() const {
    std::vector<Tokens> all;
    for (const GoldenPrompt& prompt : read_golden(GetParam())) all.push_back(prompt.tokens);
    return all;
  }
  std::string path() const { return golden_path(GetParam(), "model.gguf"); }

  void expect_cpu(DType kv_dtype, float share) const {
    const std::unique_ptr<Runtime> gpu = card(false);
    if (gpu == nullptr) GTEST_SKIP() << "no CUDA device";
    const std::unique_ptr<Runtime> cpu = make_runtime(2);
    const std::vector<Tokens> texts = this->texts();
    const std::vector<Logits> ours = run(*gpu, path(), texts, {whole(texts)}, kv_dtype);
    const std::vector<Logits> theirs = run(*cpu, path(), texts, {whole(texts)}, kv_dtype);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t t = 0; t < ours.size(); ++t) {
      const auto [low, high] =
          std::minmax_element(theirs[t].values.begin(), theirs[t].values.end());
      ASSERT_EQ(ours[t].values.size(), theirs[t].values.size());
      float apart = 0;
      for (size_t i = 0; i < ours[t].values.size(); ++i) {
        const float difference = std::abs(ours[t].values[i] - theirs[t].values[i]);
        apart = difference <= apart ? apart : difference;  // NaN comes through
      }
      EXPECT_LE(apart, share * (*high - *low)) << "text " << t << ", logits span " << *high - *low;
    }
  }
};

TEST_P(CudaModelTest, AgreesWithTheCpu) { expect_cpu(DType::kF16, kTolerance); }
TEST_P(CudaModelTest, AgreesWithTheCpuOnBytes) { expect_cpu(DType::kI8, 2 * kTolerance); }

// With --deterministic a token's logits are the same bits however it was computed.
TEST_P(CudaModelTest, DeterministicLogitsDoNotDependOnTheirCompany) {
  const std::unique_ptr<Runtime> gpu = card(true);
  if (gpu == nullptr) GTEST_SKIP() << "no CUDA device";
  const std::vector<Tokens> texts = this->texts();
  std::vector<Step> one_by_one;
  for (size_t t = 0; t < texts.size(); ++t) {
    for (size_t i = 0; i < texts[t].size(); ++i) one_by_one.push_back({{t, 1}});
  }
  for (const DType kv_dtype : {DType::kF16, DType::kI8}) {
    const std::vector<Logits> together = run(*gpu, path(), texts, {whole(texts)}, kv_dtype);
    for (const int block_size : {8, 16}) {
      const std::vector<Logits> alone = run(*gpu, path(), texts, one_by_one, kv_dtype, block_size);
      for (size_t t = 0; t < texts.size(); ++t) {
        EXPECT_EQ(together[t].values, alone[t].values)
            << "text " << t << ", blocks of " << block_size << ", " << dtype_name(kv_dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaModelTest,
                         testing::Values("gemma3", "llama", "llama_linear", "llama_llama3",
                                         "mistral", "olmo2", "phi3", "qwen2", "qwen2_yarn", "qwen3",
                                         "qwen3moe"));

}  // namespace
}  // namespace tinyvllm
