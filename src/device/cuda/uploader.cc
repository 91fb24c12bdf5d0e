#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstring>
#include <cuda_runtime_api.h>

namespace tinyvllm {
namespace {

// Small enough for the ring to stay in a server's last cache, large enough for the bus.
constexpr size_t kPieceBytes = size_t{8} << 20;
constexpr size_t kSliceBytes = size_t{256} << 10;  // of a piece, that one thread copies
constexpr size_t kAlignment = 256;
// A core copies some 8 GB/s out of a mapped file that it sees for the first time; the bus takes
// seven times that.
constexpr int kMostThreads = 16;

Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("CUDA, ", what, ": ", cudaGetErrorString(status));
}

}  // namespace

Uploader::Uploader() {
  pinning_ = std::thread([this] { pinned_ = pin(); });
}

Uploader::~Uploader() {
  if (pinning_.joinable()) pinning_.join();
  for (void* event : copied_) {
    if (event != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  if (data_ != nullptr) cudaFreeHost(data_);
}

Status Uploader::pin() {
  void* data = nullptr;
  TRY(check(cudaHostAlloc(&data, kPieces * kPieceBytes, cudaHostAllocDefault), "pinned memory"));
  data_ = static_cast<char*>(data);
  for (void*& copied : copied_) {
    cudaEvent_t event = nullptr;
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    copied = event;
  }
  copiers_ = std::make_unique<ThreadPool>(std::min(kMostThreads, default_thread_count()));
  return Status();
}

Status Uploader::upload(void* to, const void* from, size_t bytes, CUstream_st* stream) {
  if (pinning_.joinable()) pinning_.join();
  TRY(pinned_);
  for (size_t done = 0; done < bytes;) {
    if (used_ == kPieceBytes) TRY(next_piece(stream));
    const size_t count = std::min(kPieceBytes - used_, bytes - done);
    char* piece = data_ + static_cast<size_t>(piece_) * kPieceBytes + used_;
    fill(piece, static_cast<const char*>(from) + done, count);
    TRY(check(cudaMemcpyAsync(static_cast<char*>(to) + done, piece, count, cudaMemcpyHostToDevice,
                              stream),
              "an upload"));
    used_ += (count + kAlignment - 1) / kAlignment * kAlignment;
    done += count;
  }
  return Status();
}

// What came before is on its way; the next one has arrived, or is waited for.
Status Uploader::next_piece(CUstream_st* stream) {
  TRY(check(cudaEventRecord(static_cast<cudaEvent_t>(copied_[piece_]), stream), "an upload"));
  piece_ = (piece_ + 1) % kPieces;
  used_ = 0;
  return check(cudaEventSynchronize(static_cast<cudaEvent_t>(copied_[piece_])), "an upload");
}

void Uploader::fill(char* to, const char* from, size_t bytes) {
  if (bytes <= kSliceBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto slices = static_cast<int64_t>((bytes + kSliceBytes - 1) / kSliceBytes);
  copiers_->parallel_for(slices, [&](int64_t slice, int) {
    const size_t begin = static_cast<size_t>(slice) * kSliceBytes;
    std::memcpy(to + begin, from + begin, std::min(kSliceBytes, bytes - begin));
  });
}

}  // namespace tinyvllm
