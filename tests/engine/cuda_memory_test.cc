// A card without room: a load fails before anything is uploaded, with what is needed and what there
// is; and of a card with room, no more is used than was allowed.
#include <gtest/gtest.h>

#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

Result<std::unique_ptr<Runtime>> open_card(double utilization) {
  RuntimeOptions options;
  options.threads = 1;
  options.device = DeviceKind::kCuda;
  options.cuda.memory_utilization = utilization;
  return Runtime::create(options);
}

Result<std::unique_ptr<LLMEngine>> load(Runtime& runtime, const EngineOptions& options) {
  const std::string folder = tiny_config("llama");
  auto engine = LLMEngine::load(runtime, folder, options);
  std::filesystem::remove_all(folder);
  return engine;
}

TEST(CudaMemory, WeightsThatDoNotFitAreRefusedWithBothNumbers) {
  const auto runtime = open_card(1e-6);
  if (!runtime.ok()) GTEST_SKIP() << runtime.message();
  const auto engine = load(*runtime.value(), tiny_options());
  ASSERT_FALSE(engine.ok());
  for (const char* words : {"out of device memory: the weights take", "leaves 0 B free",
                            "--gpu-memory-utilization", "a larger one"}) {
    EXPECT_NE(engine.message().find(words), std::string::npos) << engine.message();
  }
}

TEST(CudaMemory, StepsOfManyTokensLeaveLessForTheCache) {
  const auto available = [](double utilization) {
    return static_cast<double>(open_card(utilization).value()->device().available_memory());
  };
  if (const auto card = open_card(1); !card.ok()) GTEST_SKIP() << card.message();
  EngineOptions options = tiny_options();
  options.max_num_batched_tokens = 1 << 20;
  options.max_num_seqs = 16384;  // more than the cache will have room for
  double activations = 0;
  {
    const auto runtime = open_card(1).value();
    const auto engine = load(*runtime, options);
    ASSERT_TRUE(engine.ok()) << engine.message();
    activations = static_cast<double>(engine.value()->runner().activation_bytes());
  }
  const double total = 2 * (available(1) - available(0.5));
  const double wanted = activations + static_cast<double>(size_t{1} << 30);
  const auto runtime = open_card(1 - (available(1) - wanted) / total).value();
  options.kv_cache_memory = 0;
  options.kv_cache_dtype = "f32";
  const auto engine = load(*runtime, options);
  ASSERT_TRUE(engine.ok()) << engine.message();
  EXPECT_GT(runtime->device().available_memory(), 0u);
}

}  // namespace
}  // namespace tinyvllm
