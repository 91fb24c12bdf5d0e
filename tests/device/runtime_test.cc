// What a user may say of devices, in words and in the environment.
#include "device/runtime.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

// DEVICE as one test wants it, and afterwards as it was.
class Environment {
 public:
  explicit Environment(const char* device) {
    if (const char* before = std::getenv("DEVICE")) before_ = before;
    setenv("DEVICE", device, 1);
  }
  ~Environment() { before_.empty() ? unsetenv("DEVICE") : setenv("DEVICE", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(RuntimeOptions, TheDeviceIsTheCallersOrTheEnvironmentsOrACpu) {
  const auto kind = [](const DeviceOptions& chosen) {
    return runtime_options(chosen).value().device;
  };
  const Environment none("");
  EXPECT_EQ(kind({}), DeviceKind::kCpu);
  EXPECT_EQ(kind({.device = "cuda"}), DeviceKind::kCuda);
  const Environment cuda("CUDA");
  EXPECT_EQ(kind({}), DeviceKind::kCuda);
  EXPECT_EQ(kind({.device = "cpu"}), DeviceKind::kCpu);
}

TEST(RuntimeOptions, WhatIsWrongIsNamedByWhoSaidIt) {
  const auto refusal = [](const DeviceOptions& chosen) {
    return runtime_options(chosen).message();
  };
  EXPECT_EQ(refusal({.device = "gpu"}), "device: expected cpu or cuda, found 'gpu'");
  const Environment environment("tpu");
  EXPECT_EQ(refusal({}), "DEVICE: expected cpu or cuda, found 'tpu'");
  EXPECT_EQ(refusal({.device = "cpu"}), "");
  for (const double share : {0.0, -0.5, 1.5}) {
    EXPECT_NE(refusal({.device = "cpu", .gpu_memory_utilization = share})
                  .find("gpu_memory_utilization: expected"),
              std::string::npos);
  }
}

TEST(Runtime, ACardThatIsNotThereIsAnErrorThatSaysSo) {
  const auto runtime = Runtime::create(runtime_options({.device = "cuda"}).value());
  if (runtime.ok()) GTEST_SKIP() << "there is one";
  EXPECT_NE(runtime.message().find("CUDA"), std::string::npos) << runtime.message();
  EXPECT_NE(runtime.message().find("--device cpu"), std::string::npos) << runtime.message();
}

}  // namespace
}  // namespace tinyvllm
