// Measures what this machine can do: in under a second, all threads at once.
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "telemetry/limits.h"

namespace tinyvllm::ops::cpu {

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool);

// Only what is multiplied, with the instruction set of this device.
MachineLimits measure_compute(Device& device, ThreadPool& pool);

// Bytes a second that so many threads read from `bytes` of memory over and over, each its own part:
// from the caches, if it fits there.
Result<double> measure_read(Device& device, ThreadPool& pool, size_t bytes, int threads);

}  // namespace tinyvllm::ops::cpu
