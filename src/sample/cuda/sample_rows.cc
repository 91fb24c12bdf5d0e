#include "sample/cuda/sample_rows.h"

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "sample/cuda/sample_rows_kernel.h"

namespace tinyvllm::cuda_sampler {

void sample_rows(Device& device, const float* logits, int64_t stride, int64_t width,
                 const block_sampler::DeviceRow* rows, int64_t count, const int32_t* previous,
                 void* scratch, int32_t* tokens, block_sampler::Scores* scores) {
  CHECK(width > 0 && width <= block_sampler::kMostTokens) << "a vocabulary of " << width;
  launch_sample_rows(logits, stride, width, rows, count, previous, static_cast<uint32_t*>(scratch),
                     tokens, scores, static_cast<CudaDevice&>(device).stream());
}

}  // namespace tinyvllm::cuda_sampler
