// The kernels of the instruction set that a device was made for.
#pragma once

#include "device/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace tinyvllm::ops::cpu {

const Kernels& kernels(Isa isa);

inline const Kernels& kernels(Device& device) {
  return kernels(static_cast<CpuDevice&>(device).isa());
}

}  // namespace tinyvllm::ops::cpu
