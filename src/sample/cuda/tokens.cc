#include "sample/cuda/tokens.h"

#include <algorithm>
#include <cuda_runtime_api.h>

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "sample/cuda/greedy_kernel.h"
#include "sample/cuda/sample_rows.h"

namespace tinyvllm::cuda_sampler {
namespace {

// Rows of logits for which there is room from the start: requests that want their rows on the host
// are few. More of them make more.
constexpr int kBroughtRows = 4;

template <class T>
bool pin(T** to, size_t count) {
  return cudaHostAlloc(reinterpret_cast<void**>(to), count * sizeof(T), cudaHostAllocDefault) ==
         cudaSuccess;
}

}  // namespace

struct Tokens::Impl {
  struct Copy {
    int32_t* tokens = nullptr;                // [max_rows], pinned
    block_sampler::Scores* scores = nullptr;  // [max_rows], pinned
    float* logits = nullptr;                  // [logit_rows, width], pinned
    size_t logit_rows = 0;
    bool with_scores = false;
    cudaEvent_t done = nullptr;
  };
  CudaDevice* device = nullptr;
  int max_rows = 0;
  size_t width = 0;
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
      if (copy.logits != nullptr) cudaFreeHost(copy.logits);
    }
  }

  int32_t* on_device() const { return static_cast<int32_t*>(tokens.data()); }
  Copy& next() {
    CHECK(chosen - collected < 2) << "a third choice before the first was collected";
    return copies[chosen % 2];
  }
  Copy& begin(int64_t count) {
    CHECK(count <= max_rows) << count << " rows, room for " << max_rows;
    Copy& copy = next();
    chosen += 1;
    return copy;
  }
  Status make_room(Copy& copy, size_t rows) const {
    if (copy.logits != nullptr) cudaFreeHost(copy.logits);
    copy.logits = nullptr;
    copy.logit_rows = 0;
    if (!pin(&copy.logits, rows * width)) {
      cudaGetLastError();
      return error("CUDA has no pinned memory for ", rows, " rows of logits");
    }
    copy.logit_rows = rows;
    return Status();
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

Result<std::unique_ptr<Tokens>> Tokens::create(Device& device, int max_rows, int64_t width) {
  auto impl = std::make_unique<Impl>();
  impl->width = static_cast<size_t>(width);
  impl->device = static_cast<CudaDevice*>(&device);
  impl->max_rows = max_rows;
  const size_t tokens = static_cast<size_t>(max_rows) * sizeof(int32_t);
  const size_t scores = static_cast<size_t>(max_rows) * sizeof(block_sampler::Scores);
  TRY_ASSIGN(impl->tokens, device.allocate(tokens, "sampled tokens"));
  TRY_ASSIGN(impl->fresh, device.allocate(tokens, "sampled tokens"));
  TRY_ASSIGN(impl->scores, device.allocate(scores, "sampled tokens' scores"));
  for (Impl::Copy& copy : impl->copies) {
    const auto rows = static_cast<size_t>(max_rows);
    if (!pin(&copy.tokens, rows) || !pin(&copy.scores, rows) ||
        cudaEventCreateWithFlags(&copy.done, cudaEventDisableTiming) != cudaSuccess) {
      return error("CUDA has no pinned memory for ", max_rows, " tokens");
    }
    TRY(impl->make_room(copy, static_cast<size_t>(std::min(max_rows, kBroughtRows))));
  }
  return std::unique_ptr<Tokens>(new Tokens(std::move(impl)));
}

Status Tokens::bring(const Tensor& logits, std::span<const int64_t> rows) {
  Impl::Copy& copy = impl_->next();
  if (copy.logit_rows < rows.size()) {
    const auto most = static_cast<size_t>(impl_->max_rows);
    TRY(impl_->make_room(copy, std::min(2 * rows.size(), most)));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const cudaError_t status = cudaMemcpyAsync(
        copy.logits + i * impl_->width, logits.f32() + rows[i] * logits.stride,
        impl_->width * sizeof(float), cudaMemcpyDeviceToHost, impl_->device->stream());
    if (status != cudaSuccess) return error("CUDA, logits: ", cudaGetErrorString(status));
  }
  return Status();
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

Result<Tokens::Choice> Tokens::collect() {
  const Impl::Copy& copy = impl_->copies[impl_->collected++ % 2];
  if (const cudaError_t status = cudaEventSynchronize(copy.done); status != cudaSuccess) {
    cudaGetLastError();
    TRY(impl_->device->judged(
        error(impl_->device->hardware(), " failed: ", cudaGetErrorString(status))));
  }
  return Choice{copy.tokens, copy.with_scores ? copy.scores : nullptr, copy.logits};
}

}  // namespace tinyvllm::cuda_sampler
