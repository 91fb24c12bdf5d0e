// What a loading engine says of its progress: it grows, and what it claims at last is there.
#include <gtest/gtest.h>

#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

void expect_progress(Runtime& runtime, const std::string& dtype) {
  EngineOptions options = tiny_options();
  options.dtype = dtype;
  int64_t last = 0;
  int calls = 0;
  options.load_progress = [&](std::string_view /*tensor*/, int64_t done, int64_t total) {
    EXPECT_LE(last, done);
    EXPECT_LE(done, total);
    last = done;
    calls += 1;
  };
  const auto engine = load_tiny(runtime, options);
  ASSERT_NE(engine, nullptr);
  int64_t bytes = 0;
  const auto& tensors = engine->files().weights().tensors();
  for (const WeightTensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.view.bytes());
  EXPECT_EQ(last, bytes);
  EXPECT_GT(calls, static_cast<int>(tensors.size()));
}

TEST(LoadProgress, GrowsUntilAllIsThere) {
  const auto runtime = Runtime::create({1}).value();
  expect_progress(*runtime, "F16");
}

TEST(CudaLoadProgress, GrowsUntilAllIsThere) {
  RuntimeOptions options;
  options.device = DeviceKind::kCuda;
  const auto runtime = Runtime::create(options);
  if (!runtime.ok()) GTEST_SKIP() << runtime.message();
  expect_progress(*runtime.value(), "F16");
  expect_progress(*runtime.value(), "F32");  // packed, through scratch
}

}  // namespace
}  // namespace tinyvllm
