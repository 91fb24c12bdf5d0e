// Kernels that follow each other closely: the next one is already on the card, with its weights on
// their way, while this one ends (programmatic dependent launch, compute capability 9.0). Every
// kernel that is launched so waits before it touches what others wrote, or writes what they read.
#pragma once

#include <cuda_runtime.h>

#include "ops/cuda/kernels.h"

namespace tinyvllm::ops::cuda {

// From here on what earlier kernels wrote is there.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// The next kernel may come onto the card as soon as there is room.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Bytes of shared memory that a block may have, its kernel's own variables included.
inline int64_t most_shared() {
  static const int64_t most = [] {
    int bytes = 0;
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    return int64_t{bytes};
  }();
  return most;
}

// Lets a kernel be launched with so many bytes, which most_shared() has.
template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), int64_t bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));
}

inline bool has_dependent_launch() {
  static const bool has = [] {
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    return major >= 9;
  }();
  return has;
}

template <class... Parameters, class... Arguments>
void launch_behind(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                   Stream stream, Arguments&&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = has_dependent_launch() ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

}  // namespace tinyvllm::ops::cuda
