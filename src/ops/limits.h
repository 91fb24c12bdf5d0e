// What the device that runs the ops can do at best, measured with kernels of its own, and under
// which name to keep that.
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "telemetry/limits.h"

namespace tinyvllm::ops {

MachineKey machine_key(const Device& device, const ThreadPool& pool);

// Under a second; uses the device's whole strength and 1 GiB of its memory, 4 GiB on a card.
Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool);

// Bytes a second read again and again from so few bytes that caches hold them; 0 where nothing is
// known of caches.
Result<double> measure_cached_read(Device& device, ThreadPool& pool, size_t bytes);

}  // namespace tinyvllm::ops
