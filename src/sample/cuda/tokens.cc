#include "sample/cuda/tokens.h"

#include <cstring>
#include <cuda_runtime_api.h>

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "sample/cuda/greedy_kernel.h"

namespace tinyvllm::cuda_sampler {

struct Tokens::Impl {
  struct Copy {
    int32_t* pinned = nullptr;  // [max_rows]
    cudaEvent_t done = nullptr;
  };
  CudaDevice* device = nullptr;
  int max_rows = 0;
  Buffer tokens;   // [max_rows]
  Copy copies[2];  // take turns
  uint64_t chosen = 0;
  uint64_t collected = 0;

  ~Impl() {
    for (Copy& copy : copies) {
      if (copy.done != nullptr) cudaEventSynchronize(copy.done);
      if (copy.done != nullptr) cudaEventDestroy(copy.done);
      if (copy.pinned != nullptr) cudaFreeHost(copy.pinned);
    }
  }
};

Tokens::Tokens(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokens::~Tokens() = default;

Result<std::unique_ptr<Tokens>> Tokens::create(Device& device, int max_rows) {
  auto impl = std::make_unique<Impl>();
  impl->device = static_cast<CudaDevice*>(&device);
  impl->max_rows = max_rows;
  const size_t bytes = static_cast<size_t>(max_rows) * sizeof(int32_t);
  TRY_ASSIGN(impl->tokens, device.allocate(bytes, "tokens"));
  for (Impl::Copy& copy : impl->copies) {
    void* pinned = nullptr;
    if (cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault) != cudaSuccess ||
        cudaEventCreateWithFlags(&copy.done, cudaEventDisableTiming) != cudaSuccess) {
      return error("CUDA has no pinned memory for ", max_rows, " tokens");
    }
    copy.pinned = static_cast<int32_t*>(pinned);
  }
  return std::unique_ptr<Tokens>(new Tokens(std::move(impl)));
}

void Tokens::choose(const Tensor& logits, const int32_t* rows, int64_t count) {
  CHECK(count <= impl_->max_rows) << count << " rows, room for " << impl_->max_rows;
  CHECK(impl_->chosen - impl_->collected < 2) << "a third choice before the first was collected";
  Impl::Copy& copy = impl_->copies[impl_->chosen++ % 2];
  auto* tokens = static_cast<int32_t*>(impl_->tokens.data());
  CUstream_st* stream = impl_->device->stream();
  launch_greedy(logits.f32(), logits.stride, logits.cols, rows, count, tokens, stream);
  cudaMemcpyAsync(copy.pinned, tokens, static_cast<size_t>(count) * sizeof(int32_t),
                  cudaMemcpyDeviceToHost, stream);
  cudaEventRecord(copy.done, stream);
}

const int32_t* Tokens::on_device() const {
  return static_cast<const int32_t*>(impl_->tokens.data());
}

Status Tokens::collect(std::span<int32_t> tokens) {
  const Impl::Copy& copy = impl_->copies[impl_->collected++ % 2];
  cudaError_t status = cudaEventSynchronize(copy.done);
  if (status == cudaSuccess) status = cudaGetLastError();
  if (status != cudaSuccess) return error("the card failed: ", cudaGetErrorString(status));
  std::memcpy(tokens.data(), copy.pinned, tokens.size_bytes());
  return Status();
}

}  // namespace tinyvllm::cuda_sampler
