#include "sample/cuda/tokens.h"

#include <cstring>
#include <cuda_runtime_api.h>

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "sample/cuda/greedy_kernel.h"
#include "sample/cuda/sample_rows.h"

namespace tinyvllm::cuda_sampler {

struct Tokens::Impl {
  struct Copy {
    int32_t* tokens = nullptr;                // [max_rows], pinned
    block_sampler::Scores* scores = nullptr;  // [max_rows], pinned
    bool with_scores = false;
    cudaEvent_t done = nullptr;
  };
  CudaDevice* device = nullptr;
  int max_rows = 0;
  Buffer tokens;   // [max_rows]
  Buffer fresh;    // [max_rows], where the ones before are still read
  Buffer scores;   // [max_rows]
  Copy copies[2];  // take turns
  uint64_t chosen = 0;
  uint64_t collected = 0;

  ~Impl() {
    for (Copy& copy : copies) {
      if (copy.done != nullptr) cudaEventSynchronize(copy.done);
      if (copy.done != nullptr) cudaEventDestroy(copy.done);
      if (copy.tokens != nullptr) cudaFreeHost(copy.tokens);
      if (copy.scores != nullptr) cudaFreeHost(copy.scores);
    }
  }

  int32_t* on_device() const { return static_cast<int32_t*>(tokens.data()); }
  Copy& begin(int64_t count) {
    CHECK(count <= max_rows) << count << " rows, room for " << max_rows;
    CHECK(chosen - collected < 2) << "a third choice before the first was collected";
    return copies[chosen++ % 2];
  }
  void send(Copy& copy, int64_t count, bool with_scores) {
    const auto n = static_cast<size_t>(count);
    CUstream_st* stream = device->stream();
    cudaMemcpyAsync(copy.tokens, tokens.data(), n * sizeof(int32_t), cudaMemcpyDeviceToHost,
                    stream);
    if (with_scores) {
      cudaMemcpyAsync(copy.scores, scores.data(), n * sizeof(block_sampler::Scores),
                      cudaMemcpyDeviceToHost, stream);
    }
    copy.with_scores = with_scores;
    cudaEventRecord(copy.done, stream);
  }
};

Tokens::Tokens(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokens::~Tokens() = default;

Result<std::unique_ptr<Tokens>> Tokens::create(Device& device, int max_rows) {
  auto impl = std::make_unique<Impl>();
  impl->device = static_cast<CudaDevice*>(&device);
  impl->max_rows = max_rows;
  const size_t tokens = static_cast<size_t>(max_rows) * sizeof(int32_t);
  const size_t scores = static_cast<size_t>(max_rows) * sizeof(block_sampler::Scores);
  TRY_ASSIGN(impl->tokens, device.allocate(tokens, "sampled tokens"));
  TRY_ASSIGN(impl->fresh, device.allocate(tokens, "sampled tokens"));
  TRY_ASSIGN(impl->scores, device.allocate(scores, "sampled tokens' scores"));
  for (Impl::Copy& copy : impl->copies) {
    const auto pinned = [](auto** to, size_t bytes) {
      return cudaHostAlloc(reinterpret_cast<void**>(to), bytes, cudaHostAllocDefault);
    };
    if (pinned(&copy.tokens, tokens) != cudaSuccess ||
        pinned(&copy.scores, scores) != cudaSuccess ||
        cudaEventCreateWithFlags(&copy.done, cudaEventDisableTiming) != cudaSuccess) {
      return error("CUDA has no pinned memory for ", max_rows, " tokens");
    }
  }
  return std::unique_ptr<Tokens>(new Tokens(std::move(impl)));
}

void Tokens::choose_largest(const Tensor& logits, const int32_t* rows, int64_t count) {
  Impl::Copy& copy = impl_->begin(count);
  launch_greedy(logits.f32(), logits.stride, logits.cols, rows, count, impl_->on_device(),
                impl_->device->stream());
  impl_->send(copy, count, false);
}

void Tokens::sample(const Tensor& logits, const block_sampler::DeviceRow* rows, int64_t count,
                    bool looks_back, void* scratch, bool wants_scores) {
  Impl::Copy& copy = impl_->begin(count);
  auto* scores = static_cast<block_sampler::Scores*>(impl_->scores.data());
  auto* chosen = static_cast<int32_t*>((looks_back ? impl_->fresh : impl_->tokens).data());
  sample_rows(*impl_->device, logits.f32(), logits.stride, logits.cols, rows, count,
              impl_->on_device(), scratch, chosen, wants_scores ? scores : nullptr);
  if (looks_back) {
    cudaMemcpyAsync(impl_->on_device(), chosen, static_cast<size_t>(count) * sizeof(int32_t),
                    cudaMemcpyDeviceToDevice, impl_->device->stream());
  }
  impl_->send(copy, count, wants_scores);
}

const int32_t* Tokens::on_device() const { return impl_->on_device(); }

Status Tokens::collect(std::span<int32_t> tokens, const block_sampler::Scores** scores) {
  const Impl::Copy& copy = impl_->copies[impl_->collected++ % 2];
  if (const cudaError_t status = cudaEventSynchronize(copy.done); status != cudaSuccess) {
    cudaGetLastError();
    return impl_->device->judged(
        error(impl_->device->hardware(), " failed: ", cudaGetErrorString(status)));
  }
  std::memcpy(tokens.data(), copy.tokens, tokens.size_bytes());
  *scores = copy.with_scores ? copy.scores : nullptr;
  return Status();
}

}  // namespace tinyvllm::cuda_sampler
