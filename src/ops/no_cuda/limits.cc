// A build without CUDA: no device can be made that would lead here.
#include "ops/cuda/limits.h"

namespace tinyvllm::ops::cuda {

Result<MachineLimits> measure_limits(Device& device) {
  return error(device.name(), ": this build has no CUDA");
}

}  // namespace tinyvllm::ops::cuda
