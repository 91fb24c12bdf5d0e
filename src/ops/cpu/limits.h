// Measures what this machine can do: in under a second, all threads at once.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "telemetry/limits.h"

namespace tinyvllm::ops::cpu {

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool);

// Only what is multiplied, with the instruction set of this device.
MachineLimits measure_compute(Device& device, ThreadPool& pool);

// Bytes a second read from `bytes` of memory over and over, by so many threads, each its own part:
// from the caches, if it fits there. One number for each of `thread_counts`.
Result<std::vector<double>> measure_read(Device& device, ThreadPool& pool, size_t bytes,
                                         const std::vector<int>& thread_counts);

}  // namespace tinyvllm::ops::cpu
