// A build without CUDA: no device can be made that would lead here.
#include "sample/cuda/greedy.h"

#include "base/check.h"

namespace tinyvllm::cuda_sampler {

void greedy(Device&, const float*, int64_t, int64_t, const int32_t*, int64_t, int32_t*) {
  check_failed(__FILE__, __LINE__, "a build with CUDA", "");
}

}  // namespace tinyvllm::cuda_sampler
