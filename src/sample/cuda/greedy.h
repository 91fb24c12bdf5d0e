// The largest logit of each row, found where the logits are. Without CUDA: no_cuda/.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace tinyvllm::cuda_sampler {

// tokens[i] = the lowest id of the largest of row rows[i], or kNotNumbers if the row has a NaN or
// no finite maximum. All on the device; logits are [.., width] floats, rows `stride` apart.
void greedy(Device& device, const float* logits, int64_t stride, int64_t width, const int32_t* rows,
            int64_t count, int32_t* tokens);

}  // namespace tinyvllm::cuda_sampler
