// The kernels of the instruction set that a device was made for.
#pragma once

#include "device/cpu/cpu_device.h"
#include "sample/cpu/kernels.h"

namespace tinyvllm::cpu_sampler {

const Kernels& kernels(Isa isa);

}  // namespace tinyvllm::cpu_sampler
