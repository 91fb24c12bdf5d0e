#include "device/cuda/check.h"
#include "device/cuda/probe.h"

namespace tinyvllm {
namespace {

__global__ void nothing() {}

}  // namespace

Status check_kernels(const std::string& card, int major, int minor) {
  cudaFuncAttributes attributes;
  const cudaError_t found = cudaFuncGetAttributes(&attributes, nothing);
  if (found == cudaSuccess) return Status();
  cudaGetLastError();  // so that it is not taken for the next call's
  if (found != cudaErrorNoKernelImageForDevice && found != cudaErrorInvalidDeviceFunction &&
      found != cudaErrorUnsupportedPtxVersion) {
    return check(found, "its first kernel");
  }
  return error(card, " has compute capability ", major, ".", minor,
               ", and this build has kernels for " TINYVLLM_CUDA_ARCHITECTURES " only (",
               cudaGetErrorString(found),
               "); `make release` builds for every card from 8.0 on, "
               "-DTINYVLLM_CUDA_ARCHITECTURES=",
               major, minor, " for this one");
}

}  // namespace tinyvllm
