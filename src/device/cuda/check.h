// What a call of CUDA's answered, as a status. For sources that have CUDA's headers.
#pragma once

#include <cuda_runtime_api.h>

#include "base/result.h"

namespace tinyvllm {

inline Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("CUDA, ", what, ": ", cudaGetErrorString(status));
}

}  // namespace tinyvllm
