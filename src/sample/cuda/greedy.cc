#include "sample/cuda/greedy.h"

#include "device/cuda/cuda_device.h"
#include "sample/cuda/greedy_kernel.h"

namespace tinyvllm::cuda_sampler {

void greedy(Device& device, const float* logits, int64_t stride, int64_t width, const int32_t* rows,
            int64_t count, int32_t* tokens) {
  launch_greedy(logits, stride, width, rows, count, tokens,
                static_cast<CudaDevice&>(device).stream());
}

}  // namespace tinyvllm::cuda_sampler
