// What this machine was measured to do, all threads together: the honest denominators of every
// "percent of the limit".
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"

namespace tinyvllm::ops::cpu {

struct MachineLimits {
  double read_bytes_per_s = 0;  // best of several read loops over 1 GiB
  double flops_per_s = 0;       // float multiply and add, best register tile
  double int8_ops_per_s = 0;    // byte products added in 16 bits
};

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool);

}  // namespace tinyvllm::ops::cpu
