#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

namespace tinyvllm {
namespace {

// Small enough for the ring to stay in a server's last cache; copiers wait for each other at the
// end of a piece, so that smaller ones keep them less busy.
constexpr size_t kPieceBytes = size_t{16} << 20;
constexpr size_t kSliceBytes = size_t{256} << 10;  // that one thread copies at a time
constexpr size_t kAlignment = 256;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = size_t{4} << 10;
// A core copies some 8 GB/s out of a mapped file that it sees for the first time, the bus takes
// seven times that. More threads than these get in each other's way: of 8, 12 and 16 with slices of
// 64 kB to 1 MB, these moved the most.
constexpr int kMostThreads = 8;

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
  if (is_registered_) cudaHostUnregister(data_);
  std::free(data_);
}

// Large pages that the copiers touch first are registered in a seventh of the time that
// cudaHostAlloc takes for as much.
Status Uploader::pin() {
  constexpr size_t kBytes = kPieces * kPieceBytes;
  copiers_ = std::make_unique<ThreadPool>(std::min(kMostThreads, default_thread_count()));
  data_ = static_cast<char*>(std::aligned_alloc(kHugePage, kBytes));
  if (data_ == nullptr) return error("out of memory: ", kBytes >> 20, " MB to upload through");
  madvise(data_, kBytes, MADV_HUGEPAGE);  // a wish
  copiers_->parallel_for(kBytes / kHugePage, [&](int64_t huge, int) {
    char* const begin = data_ + static_cast<size_t>(huge) * kHugePage;
    for (size_t at = 0; at < kHugePage; at += kPage) begin[at] = 0;
  });
  TRY(check(cudaHostRegister(data_, kBytes, cudaHostRegisterDefault), "pinned memory"));
  is_registered_ = true;
  for (void*& copied : copied_) {
    cudaEvent_t event = nullptr;
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    copied = event;
  }
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
