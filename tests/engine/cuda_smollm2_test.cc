// The real model on a card and on the CPU: a text is as likely to one as to the other.
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "engine/scorer.h"
#include "io/model_files.h"
#include "model/registry.h"
#include "tests/data.h"
#include "tests/engine/smollm2.h"
#include "text/tokenizer.h"

namespace tinyvllm {
namespace {

constexpr int kContext = 512;

// As `tinyvllm perplexity` has it: windows of the text, of which the second halves are scored.
double perplexity(Runtime& runtime, const std::string& text) {
  const auto files = ModelFiles::open(smollm2_path()).value();
  const auto tokenizer = Tokenizer::create(files->tokenizer()).value();
  const auto model = load_model(*files, runtime.device(), runtime.pool(), {kContext}).value();
  const auto scorer = Scorer::create(runtime, *model, kContext).value();
  const std::vector<int32_t> tokens = tokenizer->encode(text, {true, false});
  double sum = 0;
  int scored = 0;
  for (size_t begin = 0; begin + kContext <= tokens.size(); begin += kContext) {
    const auto window = std::span(tokens).subspan(begin, kContext);
    const std::vector<TokenScore> scores = scorer->score(window, kContext / 2 + 1).value();
    for (const TokenScore& score : scores) {
      sum -= score.logprob;
      scored += 1;
    }
  }
  EXPECT_GT(scored, 900);
  return std::exp(sum / scored);
}

TEST(CudaSmolLM2, ATextIsAsLikelyAsOnTheCpu) {
  RuntimeOptions options;
  options.device = DeviceKind::kCuda;
  const auto card = Runtime::create(options);
  if (!card.ok()) GTEST_SKIP() << card.message();
  std::ifstream file(test_data("../../LICENSE"));
  const std::string text{std::istreambuf_iterator(file), {}};
  ASSERT_FALSE(text.empty());
  const double expected = perplexity(*Runtime::create({}).value(), text);
  const double found = perplexity(*card.value(), text);
  EXPECT_NEAR(found / expected, 1, 0.003) << "card " << found << ", CPU " << expected;
}

}  // namespace
}  // namespace tinyvllm
