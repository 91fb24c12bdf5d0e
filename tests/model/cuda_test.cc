// Every architecture on the card beside the same on the CPU: the same weights, the same tokens, two
// devices. Halves carry 11 bits; a logit sums over a few dozen of such roundings, so the two are
// within 1% of the span of the logits, and agree on the token wherever the CPU is surer than that.
//
// With a cache of bytes one K or V in some thirty is close enough to the middle between two for the
// halves' 2^-12 to decide which it becomes, and a step is 2^-7 of the largest: as noise, that is a
// few of the halves' roundings more, for which there is another percent. Where that noise decides
// which expert a token goes to, the CPU's own bytes and halves are far apart, and the card is to be
// near either of them.
//
// Layers pass on what reached them. Four roundings of 2^-11, of a weight, of what it is multiplied
// with, of the result and in attention, come to one of 2^-10: with such noise on all weights the
// models of two and four layers move by 0.2% to 0.6% on the CPU, the one of 62 by 1% to 9%.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/model/invariance.h"

namespace tinyvllm {
namespace {

constexpr float kTolerance = 0.01f;  // of models of up to four layers; others: in proportion

std::unique_ptr<Runtime> card(bool deterministic) {
  RuntimeOptions options;
  options.device = DeviceKind::kCuda;
  options.cuda.deterministic = deterministic;
  auto runtime = Runtime::create(options);
  return runtime.ok() ? std::move(runtime.value()) : nullptr;
}

class CudaModelTest : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Tokens> texts() const {
    std::vector<Tokens> all;
    for (const GoldenPrompt& prompt : read_golden(GetParam())) all.push_back(prompt.tokens);
    return all;
  }
  void expect_cpu(bool deterministic, DType kv_dtype, float share) const {
    const std::unique_ptr<Runtime> gpu = card(deterministic);
    if (gpu == nullptr) GTEST_SKIP() << "no CUDA device";
    const std::unique_ptr<Runtime> cpu = make_runtime(2);
    const std::vector<Tokens> texts = this->texts();
    int layers = 0;
    size_t width = 0;
    const auto run = [&](Runtime& runtime, DType dtype) {
      const ModelOptions options{.max_model_len = 64, .kv_dtype = dtype};
      const LoadedModel loaded = load(runtime, golden_path(GetParam(), "model.gguf"), options);
      layers = 0;
      for (const KvSpec& group : loaded.model->info().kv_groups) layers += group.layers;
      width = static_cast<size_t>(loaded.model->info().vocab_size);
      return run_steps(runtime, *loaded.model, texts, {whole(texts)});
    };
    const std::vector<Logits> ours = run(*gpu, kv_dtype);
    const std::vector<Logits> theirs = run(*cpu, kv_dtype);
    const std::vector<Logits> halves = run(*cpu, DType::kF16);
    share *= std::max(1.0f, static_cast<float>(layers) / 4);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t t = 0; t < ours.size(); ++t) {
      const auto [low, high] =
          std::minmax_element(theirs[t].values.begin(), theirs[t].values.end());
      const float most = share * (*high - *low);
      ASSERT_EQ(ours[t].values.size(), theirs[t].values.size());
      for (size_t row = 0; row < ours[t].values.size(); row += width) {
        const auto apart = [&](const Logits& a, const Logits& b) {
          float largest = 0;
          for (size_t i = row; i < row + width; ++i) {
            const float difference = std::abs(a.values[i] - b.values[i]);
            largest = difference <= largest ? largest : difference;  // NaN comes through
          }
          return largest;
        };
        const bool is_edge = apart(theirs[t], halves[t]) > most;
        const float off = apart(ours[t], theirs[t]);
        EXPECT_LE(is_edge ? std::min(off, apart(ours[t], halves[t])) : off, most)
            << "text " << t << ", token " << row / width << ", logits span " << *high - *low;
      }
    }
  }
};

TEST_P(CudaModelTest, AgreesWithTheCpu) { expect_cpu(false, DType::kF16, kTolerance); }
TEST_P(CudaModelTest, AgreesWithTheCpuDeterministically) {
  expect_cpu(true, DType::kF16, kTolerance);
}
TEST_P(CudaModelTest, AgreesWithTheCpuOnBytes) { expect_cpu(false, DType::kI8, 2 * kTolerance); }

INSTANTIATE_TEST_SUITE_P(Models, CudaModelTest, testing::ValuesIn(kGoldenModels),
                         [](const auto& info) { return info.param; });

// With --deterministic the card keeps what the CPU promises.
class CudaInvarianceTest : public InvarianceTest {};

TEST_P(CudaInvarianceTest, LogitsAreTheSameBitsHoweverTheyAreComputed) {
  const std::unique_ptr<Runtime> gpu = card(true);
  if (gpu == nullptr) GTEST_SKIP() << "no CUDA device";
  expect_same_on({gpu.get()});
}

INSTANTIATE_TEST_SUITE_P(Models, CudaInvarianceTest, InvarianceTest::values(),
                         InvarianceTest::name_of);

}  // namespace
}  // namespace tinyvllm
