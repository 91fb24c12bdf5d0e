// Measures what this machine can do: in under a second, all threads at once.
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "telemetry/limits.h"

namespace tinyvllm::ops::cpu {

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool);

}  // namespace tinyvllm::ops::cpu
