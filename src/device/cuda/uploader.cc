#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "base/thread_pool.h"

namespace tinyvllm {
namespace {

// A core copies some 8 GB/s into pinned memory, 5 when others use the memory too, and the bus takes
// 55. A copy takes the card 2 µs besides its bytes: in pieces of 1 MiB the bus moves 49 GB/s, of 2
// MiB 52, of these 54. The first 250 MB go at half a core's speed, until the processor's cache has
// all pieces; those of 1 MiB it has from the start, and the bus loses as much.
constexpr int kMostThreads = 12;
constexpr size_t kPieceBytes = size_t{4} << 20;
constexpr size_t kFirstBytes = size_t{512} << 10;
constexpr size_t kMostWaiting = 64;  // parts: whoever posts is not far ahead of what is there
constexpr size_t kAtOnce = 16;       // uploads
constexpr size_t kPieces = 2;        // of a thread: one is filled while the other travels
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = size_t{4} << 10;
constexpr size_t kAlignment = 256;

Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("CUDA, ", what, ": ", cudaGetErrorString(status));
}

}  // namespace

Uploader::Uploader(CUstream_st* ops) : ops_(ops) { start(); }

Uploader::~Uploader() {
  rest();
  pinning_.join();
}

void Uploader::start() {
  pinning_ = std::thread([this] { pinned_ = pin(); });
}

// Large pages that the team touches first are registered in a seventh of the time that
// cudaHostAlloc takes for as much.
Status Uploader::pin() {
  TRY(check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "a stream"));
  cudaEvent_t turn = nullptr;
  TRY(check(cudaEventCreateWithFlags(&turn, cudaEventDisableTiming), "an event"));
  turn_ = turn;
  const auto threads = static_cast<size_t>(std::min(kMostThreads, default_thread_count()));
  const size_t bytes = threads * kPieces * kPieceBytes;
  data_ = static_cast<char*>(std::aligned_alloc(kHugePage, bytes));
  if (data_ == nullptr) return error("out of memory: ", bytes >> 20, " MB to upload through");
  madvise(data_, bytes, MADV_HUGEPAGE);  // a wish
  std::vector<std::thread> touching;
  for (size_t thread = 0; thread < threads; ++thread) {
    touching.emplace_back([own = data_ + thread * kPieces * kPieceBytes] {
      for (size_t at = 0; at < kPieces * kPieceBytes; at += kPage) own[at] = 0;
    });
  }
  for (std::thread& thread : touching) thread.join();
  TRY(check(cudaHostRegister(data_, bytes, cudaHostRegisterDefault), "pinned memory"));
  is_registered_ = true;
  for (size_t i = 0; i < threads * kPieces; ++i) {
    cudaEvent_t event = nullptr;
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    sent_.push_back(event);
  }
  for (size_t i = 0; i < threads; ++i) team_.emplace_back([this, i] { work(i); });
  return Status();
}

void Uploader::unpin() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : team_) thread.join();
  team_.clear();
  stopping_ = false;
  for (void* event : sent_) {
    cudaEventSynchronize(static_cast<cudaEvent_t>(event));
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  sent_.clear();
  if (turn_ != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(turn_));
  turn_ = nullptr;
  if (copies_ != nullptr) cudaStreamDestroy(copies_);
  copies_ = nullptr;
  if (is_registered_) cudaHostUnregister(data_);
  is_registered_ = false;
  std::free(data_);
  data_ = nullptr;
}

// Beside whatever comes next: it takes as long as sending 30 MB.
void Uploader::rest() {
  if (resting_) return;
  (void)drain();  // a failure was heard of by whoever waited for the weights
  if (pinning_.joinable()) pinning_.join();
  pinning_ = std::thread([this] { unpin(); });
  resting_ = true;
}

// What `after` is given from now on comes after what `before` has by now.
Status Uploader::order(CUstream_st* before, CUstream_st* after) {
  auto* event = static_cast<cudaEvent_t>(turn_);
  TRY(check(cudaEventRecord(event, before), "an upload"));
  return check(cudaStreamWaitEvent(after, event, 0), "an upload");
}

Status Uploader::wait_until_pinned() {
  if (resting_) {
    pinning_.join();
    resting_ = false;
    start();
  }
  if (pinning_.joinable()) pinning_.join();
  return pinned_;
}

Status Uploader::go_behind_ops() {
  TRY(wait_until_pinned());
  return order(ops_, copies_);
}

Status Uploader::go_behind(CUevent_st* event) {
  TRY(wait_until_pinned());
  return check(cudaStreamWaitEvent(copies_, event, 0), "an upload");
}

Status Uploader::post(void* to, const void* from, size_t bytes, Then then) {
  TRY(wait_until_pinned());
  {
    std::unique_lock lock(mutex_);
    less_.wait(lock, [&] { return parts_.size() <= kMostWaiting; });
    if (posted_.empty()) begun_ = 0;
    Posted& whole = posted_.emplace_back(Posted{0, std::move(then)});
    for (size_t begin = 0; begin < bytes;) {
      const size_t count = part_bytes(bytes - begin);
      parts_.push_back(
          {static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, count, &whole});
      whole.parts += 1;
      begun_ += 1;
      begin += count;
    }
  }
  more_.notify_all();
  return Status();
}

// Of so many that are left. The first ones of all are small, so that the card soon has something to
// read; then they are as large as pieces are, and no last one is much smaller than the others.
size_t Uploader::part_bytes(size_t bytes) const {
  const size_t most =
      std::min(kPieceBytes, kFirstBytes << std::min<size_t>(begun_ / team_.size(), 8));
  if (bytes <= most) return bytes;
  const size_t count = (bytes + most - 1) / most;
  return ((bytes + count - 1) / count + kAlignment - 1) / kAlignment * kAlignment;
}

// Some at a time, so that what is done with the first ones is done while the others travel.
Status Uploader::drain(size_t newest) {
  std::unique_lock lock(mutex_);
  while (posted_.size() > newest) {
    const auto end =
        posted_.begin() + static_cast<ptrdiff_t>(std::min(posted_.size() - newest, kAtOnce));
    less_.wait(lock, [&] {
      return std::all_of(posted_.begin(), end, [](const Posted& p) { return p.parts == 0; });
    });
    std::vector<Posted> enqueued(std::move_iterator(posted_.begin()), std::move_iterator(end));
    posted_.erase(posted_.begin(), end);
    TRY(failure_);
    lock.unlock();
    TRY(order(copies_, ops_));
    for (const Posted& posted : enqueued) posted.then(&posted == &enqueued.back());
    lock.lock();
  }
  return failure_;
}

void Uploader::work(size_t thread) {
  std::unique_lock lock(mutex_);
  for (size_t turn = 0;; turn ^= 1) {
    more_.wait(lock, [&] { return stopping_ || !parts_.empty(); });
    if (parts_.empty()) return;
    const Part part = parts_.front();
    parts_.pop_front();
    if (parts_.size() == kMostWaiting) less_.notify_one();
    const size_t piece = thread * kPieces + turn;
    lock.unlock();
    Status sent = send(part, data_ + piece * kPieceBytes, sent_[piece]);
    lock.lock();
    if (!sent.ok() && failure_.ok()) failure_ = std::move(sent);
    part.whole->parts -= 1;
    if (part.whole->parts == 0) less_.notify_one();
  }
}

Status Uploader::send(const Part& part, char* piece, void* sent) {
  TRY(check(cudaEventSynchronize(static_cast<cudaEvent_t>(sent)), "an upload"));
  std::memcpy(piece, part.from, part.bytes);
  TRY(check(cudaMemcpyAsync(part.to, piece, part.bytes, cudaMemcpyHostToDevice, copies_),
            "an upload"));
  return check(cudaEventRecord(static_cast<cudaEvent_t>(sent), copies_), "an upload");
}

}  // namespace tinyvllm
