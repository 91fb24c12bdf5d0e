// A build without CUDA: no device can be made that would lead here.
#include "sample/cuda/sample_rows.h"

#include "base/check.h"

namespace tinyvllm::cuda_sampler {

void sample_rows(Device&, const float*, int64_t, int64_t, const block_sampler::DeviceRow*, int64_t,
                 const int32_t*, void*, int32_t*, block_sampler::Scores*) {
  check_failed(__FILE__, __LINE__, "a build with CUDA", "");
}

}  // namespace tinyvllm::cuda_sampler
