// The flags of every command that computes: on how many threads, and on which device.
#pragma once

#include <string>

#include "base/result.h"
#include "device/runtime.h"

namespace CLI {
class App;
}

namespace tinyvllm {

struct DeviceFlags {
  int threads = 0;
  std::string device;  // empty: what DEVICE says, or else cpu
  CudaOptions cuda;
};

// --threads, --device, --deterministic, --gpu-memory-utilization
void add_device_flags(CLI::App& command, DeviceFlags& flags);
Result<RuntimeOptions> runtime_options(const DeviceFlags& flags);
Result<std::unique_ptr<Runtime>> create_runtime(const DeviceFlags& flags);

}  // namespace tinyvllm
