#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "base/thread_pool.h"
#include "device/cuda/check.h"

namespace tinyvllm {
namespace {

// A core copies some 8 GB/s into pinned memory, 5 when others use the memory too, and the bus takes
// 55. A copy takes the card about 5 µs besides its bytes, so batches are large; the processor's
// cache should still have one when it is filled again, so they are few. A model of 1 GB in GB/s:
// eight batches of 3 or 4 MiB 49, six of 4 or twelve of 2 MiB 46 to 47, eight of 8 MiB 47, four of
// 16 MiB 39.
constexpr int kMostThreads = 12;
constexpr size_t kBatches = 8;
constexpr size_t kBatchBytes = size_t{4} << 20;
constexpr size_t kFirstBytes = size_t{1} << 20;
constexpr size_t kSlices = 8;   // of a batch
constexpr size_t kAtOnce = 16;  // uploads that are followed together
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = size_t{4} << 10;

}  // namespace

Uploader::Uploader(CUstream_st* ops) : ops_(ops), next_room_(kFirstBytes) { start(); }

Uploader::~Uploader() {
  rest();
  settle();
}

void Uploader::start() {
  pinning_ = std::thread([this] { pinned_ = pin(); });
}

// Large pages that several threads touch first are registered in a seventh of the time that
// cudaHostAlloc takes for as much.
Status Uploader::pin() {
  TRY(check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "a stream"));
  cudaEvent_t turn = nullptr;
  TRY(check(cudaEventCreateWithFlags(&turn, cudaEventDisableTiming), "an event"));
  turn_ = turn;
  const auto threads = static_cast<size_t>(std::min(kMostThreads, default_thread_count()));
  constexpr size_t bytes = kBatches * kBatchBytes;
  data_ = static_cast<char*>(std::aligned_alloc(kHugePage, bytes));
  if (data_ == nullptr) return error("out of memory: ", bytes >> 20, " MB to upload through");
  madvise(data_, bytes, MADV_HUGEPAGE);  // a wish
  std::vector<std::thread> touching;
  for (size_t i = 0; i < kBatches; ++i) {
    touching.emplace_back([own = data_ + i * kBatchBytes] {
      for (size_t at = 0; at < kBatchBytes; at += kPage) own[at] = 0;
    });
  }
  for (std::thread& thread : touching) thread.join();
  TRY(check(cudaHostRegister(data_, bytes, cudaHostRegisterDefault), "pinned memory"));
  is_registered_ = true;
  batches_.resize(kBatches);
  for (size_t i = 0; i < kBatches; ++i) {
    cudaEvent_t event = nullptr;
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    batches_[i].data = data_ + i * kBatchBytes;
    batches_[i].arrived = event;
    reusable_.push_back(&batches_[i]);
  }
  for (size_t i = 0; i < threads; ++i) team_.emplace_back([this] { work(); });
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
  for (const Batch& batch : batches_) {
    if (batch.arrived == nullptr) continue;
    cudaEventSynchronize(static_cast<cudaEvent_t>(batch.arrived));
    cudaEventDestroy(static_cast<cudaEvent_t>(batch.arrived));
  }
  batches_.clear();
  reusable_.clear();
  if (turn_ != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(turn_));
  turn_ = nullptr;
  if (copies_ != nullptr) cudaStreamDestroy(copies_);
  copies_ = nullptr;
  if (is_registered_) cudaHostUnregister(data_);
  is_registered_ = false;
  std::free(data_);
  data_ = nullptr;
}

// Beside whatever comes next.
void Uploader::rest() {
  if (resting_) return;
  (void)drain();  // a failure was heard of by whoever waited for the weights
  pinning_ = std::thread([this] { unpin(); });
  resting_ = true;
}

void Uploader::settle() {
  if (pinning_.joinable()) pinning_.join();
}

// What `after` is given from now on comes after what `before` has by now.
Status Uploader::order(CUstream_st* before, CUstream_st* after) {
  auto* event = static_cast<cudaEvent_t>(turn_);
  TRY(check(cudaEventRecord(event, before), "an upload"));
  return check(cudaStreamWaitEvent(after, event, 0), "an upload");
}

// Where it failed, the next to ask has it tried again.
Status Uploader::wait_until_pinned() {
  settle();
  if (resting_) {
    resting_ = false;
    start();
    settle();
  }
  Status pinned = pinned_;
  if (!pinned.ok()) rest();
  return pinned;
}

Status Uploader::go_behind_ops() {
  TRY(wait_until_pinned());
  close();
  return order(ops_, copies_);
}

Status Uploader::go_behind(CUevent_st* event) {
  TRY(wait_until_pinned());
  close();
  return check(cudaStreamWaitEvent(copies_, event, 0), "an upload");
}

Status Uploader::post(void* to, const void* region, const void* from, size_t bytes, Then then) {
  TRY(wait_until_pinned());
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  while (bytes > 0) {
    TRY(open(target, region));
    Batch& batch = *open_;
    const size_t count = std::min(bytes, batch.room - batch.bytes);
    const size_t most = batch.room / kSlices;
    {
      const std::scoped_lock lock(mutex_);
      for (size_t at = 0; at < count; at += most) {
        slices_.push_back(
            {batch.data + batch.bytes + at, source + at, std::min(most, count - at), &batch});
        batch.unfilled += 1;
      }
      batch.bytes += count;
    }
    more_.notify_all();
    target += count;
    source += count;
    bytes -= count;
  }
  posted_.push_back({begun_, std::move(then)});
  // So that what is done with the first ones is done while the others travel.
  if (posted_.size() < kAtOnce) return Status();
  {
    const std::scoped_lock lock(mutex_);
    if (!is_sent(posted_[kAtOnce - 1])) return Status();
  }
  return follow(kAtOnce);
}

// A batch that has room and goes on at `to`. The first ones of all are small, so that the card soon
// has something to read.
Status Uploader::open(char* to, const void* region) {
  if (open_ != nullptr && open_->region == region && open_->to + open_->bytes == to &&
      open_->bytes < open_->room) {
    return Status();
  }
  close();
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return !reusable_.empty(); });
  Batch& batch = *reusable_.front();
  lock.unlock();
  TRY(check(cudaEventSynchronize(static_cast<cudaEvent_t>(batch.arrived)), "an upload"));
  lock.lock();
  reusable_.pop_front();
  batch.number = begun_++;
  batch.to = to;
  batch.region = region;
  batch.bytes = 0;
  batch.room = next_room_;
  batch.is_closed = batch.is_sent = false;
  next_room_ = std::min(2 * next_room_, kBatchBytes);
  open_ = &batch;
  return Status();
}

void Uploader::close() {
  if (open_ == nullptr) return;
  std::unique_lock lock(mutex_);
  open_->is_closed = true;
  if (open_->unfilled == 0) send(*open_, lock);
  open_ = nullptr;
}

// When something failed, too, nobody reads or sends what was posted once this has returned.
Status Uploader::drain(size_t newest) {
  settle();
  close();
  Status followed;
  while (followed.ok() && posted_.size() > newest) {
    followed = follow(std::min(posted_.size() - newest, kAtOnce));
  }
  if (followed.ok() && newest > 0) return followed;
  posted_.clear();
  next_room_ = kFirstBytes;
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return is_sent({begun_, {}}); });
  return followed.ok() ? failure_ : followed;
}

// Waits until the oldest ones are sent.
Status Uploader::follow(size_t count) {
  const auto end = posted_.begin() + static_cast<ptrdiff_t>(count);
  const std::vector<Posted> oldest(std::move_iterator(posted_.begin()), std::move_iterator(end));
  posted_.erase(posted_.begin(), end);
  {
    std::unique_lock lock(mutex_);
    less_.wait(lock, [&] { return is_sent(oldest.back()); });
    TRY(failure_);
  }
  TRY(order(copies_, ops_));
  for (const Posted& posted : oldest) posted.then(&posted == &oldest.back());
  return Status();
}

bool Uploader::is_sent(const Posted& posted) const {
  return std::all_of(batches_.begin(), batches_.end(), [&](const Batch& batch) {
    return batch.is_sent || batch.number >= posted.batches;
  });
}

void Uploader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stopping_ || !slices_.empty(); });
    if (slices_.empty()) return;
    const Slice slice = slices_.front();
    slices_.pop_front();
    lock.unlock();
    std::memcpy(slice.to, slice.from, slice.bytes);
    lock.lock();
    slice.batch->unfilled -= 1;
    if (slice.batch->unfilled == 0 && slice.batch->is_closed) send(*slice.batch, lock);
  }
}

void Uploader::send(Batch& batch, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  Status sent =
      check(cudaMemcpyAsync(batch.to, batch.data, batch.bytes, cudaMemcpyHostToDevice, copies_),
            "an upload");
  if (sent.ok()) {
    sent = check(cudaEventRecord(static_cast<cudaEvent_t>(batch.arrived), copies_), "an upload");
  }
  lock.lock();
  if (!sent.ok() && failure_.ok()) failure_ = std::move(sent);
  batch.is_sent = true;
  reusable_.push_back(&batch);
  less_.notify_one();
}

}  // namespace tinyvllm
