// The flags of every command that computes: on how many threads, and on which device.
#pragma once

#include <memory>

#include "base/result.h"
#include "device/runtime.h"

namespace CLI {
class App;
}

namespace tinyvllm {

using DeviceFlags = DeviceOptions;

// --threads, --device, --deterministic, --gpu-memory-utilization
void add_device_flags(CLI::App& command, DeviceFlags& flags);
Result<std::unique_ptr<Runtime>> create_runtime(const DeviceFlags& flags);

}  // namespace tinyvllm
