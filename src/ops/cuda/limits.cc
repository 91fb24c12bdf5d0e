#include "ops/cuda/limits.h"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <functional>
#include <limits>

#include "device/cuda/cublaslt.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/limits_kernels.h"

namespace tinyvllm::ops::cuda {
namespace {

constexpr size_t kGigabyte = size_t{1} << 30;
constexpr size_t kReadBytes = 4 * kGigabyte;       // at a time: 50 MB of it may come from the L2
constexpr size_t kUploadBytes = size_t{64} << 20;  // pinning takes longer than sending
constexpr int64_t kProductSizes[] = {4096, 8192};  // the larger has the rate, the smaller the clock
constexpr int kRounds = 3;

Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("measuring the card, ", what, ": ", cudaGetErrorString(status));
}

// Seconds between two points of a stream, as the card saw them.
class CardClock {
 public:
  explicit CardClock(CUstream_st* stream) : stream_(stream) {}
  CardClock(const CardClock&) = delete;
  CardClock& operator=(const CardClock&) = delete;
  ~CardClock() {
    for (cudaEvent_t event : {begin_, end_}) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }
  Status open() {
    TRY(check(cudaEventCreate(&begin_), "an event"));
    return check(cudaEventCreate(&end_), "an event");
  }

  Result<double> best_seconds(int runs, const char* what, const std::function<void()>& work) {
    float best = std::numeric_limits<float>::max();
    for (int i = 0; i < runs; ++i) {
      TRY(check(cudaEventRecord(begin_, stream_), what));
      work();
      TRY(check(cudaGetLastError(), what));
      TRY(check(cudaEventRecord(end_, stream_), what));
      TRY(check(cudaEventSynchronize(end_), what));
      float milliseconds = 0;
      TRY(check(cudaEventElapsedTime(&milliseconds, begin_, end_), what));
      best = std::min(best, milliseconds);
    }
    if (best <= 0) return error("measuring the card, ", what, ": its clock stood still");
    return static_cast<double>(best) / 1e3;
  }

 private:
  CUstream_st* stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// As much as there is, at most kReadBytes.
Result<Buffer> take_memory(CudaDevice& card) {
  size_t free_bytes = 0;
  size_t total = 0;
  TRY(check(cudaMemGetInfo(&free_bytes, &total), "its memory"));
  for (size_t bytes = kReadBytes; bytes >= kGigabyte; bytes /= 2) {
    if (free_bytes < bytes + bytes / 4) continue;  // cuBLASLt wants some too
    Result<Buffer> buffer = card.allocate(bytes, "measuring the card");
    if (buffer.ok()) return buffer;
  }
  return error("measuring the card takes 1.25 GiB of its memory, and only ",
               human_bytes(static_cast<double>(free_bytes)), " of ",
               human_bytes(static_cast<double>(total)), " are free");
}

// Rounds over all shapes rather than runs of one: the first launches find the card asleep.
Result<double> read_rate(CardClock& clock, const Buffer& memory, const Buffer& sink,
                         CUstream_st* stream) {
  double best = std::numeric_limits<double>::max();
  const size_t passes = kReadBytes / memory.bytes();
  for (int round = 0; round < kRounds; ++round) {
    for (const ReadShape& shape : kReadShapes) {
      TRY_ASSIGN(const double seconds, clock.best_seconds(1, "reading", [&] {
        for (size_t i = 0; i < passes; ++i) {
          launch_read(shape, memory.data(), memory.bytes(), static_cast<uint32_t*>(sink.data()),
                      stream);
        }
      }));
      best = std::min(best, seconds);
    }
  }
  return static_cast<double>(passes * memory.bytes()) / best;
}

Result<double> copy_rate(CardClock& clock, const Buffer& memory, CUstream_st* stream) {
  const size_t half = memory.bytes() / 2;
  auto* data = static_cast<char*>(memory.data());
  TRY_ASSIGN(const double seconds, clock.best_seconds(2 * kRounds, "copying", [&] {
    cudaMemcpyAsync(data + half, data, half, cudaMemcpyDeviceToDevice, stream);
  }));
  return static_cast<double>(half) / seconds;
}

Result<double> upload_rate(CardClock& clock, const Buffer& memory, CUstream_st* stream) {
  constexpr int kCopies = 4;
  void* pinned = nullptr;
  if (cudaHostAlloc(&pinned, kUploadBytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return error("measuring the card: no 64 MiB of pinned memory on the host");
  }
  const Result<double> seconds = clock.best_seconds(kRounds, "uploading", [&] {
    for (int i = 0; i < kCopies; ++i) {
      cudaMemcpyAsync(memory.data(), pinned, kUploadBytes, cudaMemcpyHostToDevice, stream);
    }
  });
  cudaFreeHost(pinned);
  if (!seconds.ok()) return seconds.error();
  return static_cast<double>(kCopies * kUploadBytes) / seconds.value();
}

// bf16 in, bf16 out, sums in float: [n, n] × [n, n]. All three lie in the first half GiB.
Result<double> product_rate(CardClock& clock, const Buffer& memory, CudaDevice& card) {
  double best = 0;
  for (const int64_t n : kProductSizes) {
    const size_t bytes = static_cast<size_t>(n * n) * 2;
    const int products = n == kProductSizes[0] ? 16 : 4;
    auto* data = static_cast<char*>(memory.data());
    CublasLt::Product product{.w = data, .x = data + bytes, .y = data + 2 * bytes};
    product.rows = product.out = product.in = n;
    product.w_stride = product.x_stride = product.y_stride = n;
    product.y_is_half = product.bf16 = true;
    Status done;
    TRY_ASSIGN(const double seconds, clock.best_seconds(2 * kRounds, "multiplying", [&] {
      for (int i = 0; i < products && done.ok(); ++i) {
        done = card.cublaslt().multiply(product, card.stream());
      }
    }));
    TRY(done);
    const double flops = 2 * static_cast<double>(n) * static_cast<double>(n * n) * products;
    best = std::max(best, flops / seconds);
  }
  return best;
}

}  // namespace

Result<MachineLimits> measure_limits(Device& device) {
  auto& card = static_cast<CudaDevice&>(device);
  TRY_ASSIGN(const Buffer memory, take_memory(card));
  TRY_ASSIGN(const Buffer sink, card.allocate(sizeof(uint32_t), "measuring the card"));
  CardClock clock(card.stream());
  TRY(clock.open());
  launch_fill(memory.data(), memory.bytes(), card.stream());
  TRY(check(cudaGetLastError(), "filling its memory"));
  MachineLimits limits;
  TRY_ASSIGN(limits.read_bytes_per_s, read_rate(clock, memory, sink, card.stream()));
  TRY_ASSIGN(limits.flops_per_s, product_rate(clock, memory, card));
  TRY_ASSIGN(limits.copy_bytes_per_s, copy_rate(clock, memory, card.stream()));
  TRY_ASSIGN(limits.upload_bytes_per_s, upload_rate(clock, memory, card.stream()));
  limits.int8_ops_per_s = limits.flops_per_s;  // quantized weights are multiplied as halves
  return limits;
}

}  // namespace tinyvllm::ops::cuda
