// A card that fails while it answers: every request ends with an error that names it, later ones
// are refused, and everything can be taken down. A failed card is lost to its process, so this
// happens in one of its own, which is killed if it hangs.
#include <cstdio>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ops/softmax.h"
#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

constexpr unsigned kMostSeconds = 60;

std::unique_ptr<Runtime> open_card() {
  RuntimeOptions options;
  options.threads = 1;
  options.device = DeviceKind::kCuda;
  auto runtime = Runtime::create(options);
  return runtime.ok() ? std::move(runtime).value() : nullptr;
}

// Has a kernel write where nothing is: the card stops, and says so in everything that follows.
void break_card(Runtime& runtime) {
  Arena none;
  ExecContext ctx{runtime.device(), runtime.pool(), none, {}};
  const Tensor nowhere(reinterpret_cast<void*>(0x10), DType::kF32, 1, 32);
  ops::softmax(ctx, nowhere, nowhere);
}

bool expect(bool condition, const char* what, const std::string& found) {
  if (!condition) std::fprintf(stderr, "expected %s, found '%s'\n", what, found.c_str());
  return condition;
}

// `prompts_too`: a prompt is about to be read when it happens, and not only tokens decoded.
bool fails_in_words(bool prompts_too) {
  const std::unique_ptr<Runtime> runtime = open_card();
  const std::string card = runtime->device().hardware();
  std::unique_ptr<LLMEngine> engine = load_tiny(*runtime);
  SamplingParams sampling;
  sampling.ignore_eos = true;
  sampling.max_tokens = 200;
  sampling.seed = 3;
  const auto add = [&](double temperature, double penalty) {
    sampling.temperature = temperature;
    sampling.repetition_penalty = penalty;
    return engine->add_request(tiny_prompt(1, 40), sampling);
  };
  size_t requests = 0;
  for (const double temperature : {0.0, 0.8}) requests += add(temperature, 1).ok() ? 1 : 0;
  for (int step = 0; step < 5; ++step) (void)engine->step();
  break_card(*runtime);
  if (prompts_too) requests += add(0.8, 1.2).ok() ? 1 : 0;
  bool good = true;
  size_t ended = 0;
  for (const RequestOutput& output : engine->run()) {
    ended += output.finish == FinishReason::kError ? 1 : 0;
    good &= expect(output.error.find(card) != std::string::npos, "the card's name", output.error);
  }
  good &= expect(ended == requests, "an error for every request", std::to_string(ended));
  const auto late = add(0, 1);
  good &= expect(!late.ok() && late.message().find(card) != std::string::npos,
                 "a request that is refused", late.message());
  return good;
}

class CudaFaultDeathTest : public testing::TestWithParam<bool> {};

TEST_P(CudaFaultDeathTest, EndsItsRequestsWithAnErrorAndNothingHangs) {
  if (open_card() == nullptr) GTEST_SKIP() << "no CUDA device";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(kMostSeconds);
        std::exit(fails_in_words(GetParam()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Steps, CudaFaultDeathTest, testing::Bool());

}  // namespace
}  // namespace tinyvllm
