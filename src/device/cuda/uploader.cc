#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "base/thread_pool.h"
#include "device/cuda/check.h"

namespace tinyvllm {
namespace {

// A core copies some 8 GB/s into pinned memory, 5 when others use the memory too, and the bus takes
// 55. A copy takes the card 3 µs besides its bytes, so batches are large. The card reads at 53
// GB/s, but at 44 what was written a moment ago (a core may still have it to itself), so several
// batches lie between filling and reading; the outer cache should still have one when it is filled
// again, so they are not many. A model of 1 GB in GB/s: 4 batches of 4 MiB 40, 8 48, 16 48, 32 46;
// 6 of 8 MiB 48 to 51.
constexpr int kMostThreads = 12;
constexpr size_t kBatches = 12;
constexpr size_t kBatchBytes = size_t{8} << 20;
constexpr size_t kFirstBytes = size_t{1} << 20;
constexpr size_t kSlices = 16;  // of a batch
constexpr size_t kAtOnce = 16;  // uploads that are followed together
constexpr uint64_t kNotCut = ~uint64_t{0};
// So many batches are left alone, unless others are late: a thread of theirs does not get on.
constexpr size_t kSpare = 6;
constexpr auto kLate = std::chrono::milliseconds(1);
constexpr auto kNap = std::chrono::microseconds(10);
constexpr auto kNewsAfter = std::chrono::milliseconds(100);
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
    free_.push_back(&batches_[i]);
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
  free_.clear();
  travelling_.clear();
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
  return order(ops_, copies_);
}

Status Uploader::go_behind(CUevent_st* event) {
  TRY(wait_until_pinned());
  return check(cudaStreamWaitEvent(copies_, event, 0), "an upload");
}

Status Uploader::post(void* to, const void* region, const void* from, size_t bytes, Then then) {
  CHECK(bytes > 0);
  TRY(wait_until_pinned());
  bool is_time = false;
  {
    const std::scoped_lock lock(mutex_);
    Posted& whole = posted_.emplace_back(Posted{kNotCut, std::move(then)});
    uncut_.push_back(
        {static_cast<char*>(to), region, static_cast<const char*>(from), bytes, &whole});
    unsent_ += bytes;
    is_time = posted_.size() >= kAtOnce && is_sent(posted_[kAtOnce - 1]);
  }
  more_.notify_all();
  // So that what is done with the first ones is done while the others travel.
  return is_time ? follow(kAtOnce, nullptr) : Status();
}

// When something failed, too, nobody reads or sends what was posted once this has returned.
Status Uploader::drain(size_t newest, const News& news) {
  settle();
  Status followed;
  while (followed.ok() && posted_.size() > newest) {
    followed = follow(std::min(posted_.size() - newest, kAtOnce), news);
    if (news) news(unsent_);
  }
  if (followed.ok() && newest > 0) return followed;
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] {
    return uncut_.empty() && std::all_of(batches_.begin(), batches_.end(),
                                         [](const Batch& batch) { return batch.is_sent; });
  });
  posted_.clear();
  next_room_ = kFirstBytes;
  return followed.ok() ? failure_ : followed;
}

// Waits until the oldest ones are sent.
Status Uploader::follow(size_t count, const News& news) {
  std::vector<Posted> oldest;
  {
    std::unique_lock lock(mutex_);
    while (!less_.wait_for(lock, kNewsAfter, [&] { return is_sent(posted_[count - 1]); })) {
      if (!news) continue;
      lock.unlock();
      news(unsent_);
      lock.lock();
    }
    TRY(failure_);
    const auto end = posted_.begin() + static_cast<ptrdiff_t>(count);
    oldest.assign(std::move_iterator(posted_.begin()), std::move_iterator(end));
    posted_.erase(posted_.begin(), end);
  }
  TRY(order(copies_, ops_));
  for (const Posted& posted : oldest) posted.then(&posted == &oldest.back());
  return Status();
}

bool Uploader::is_sent(const Posted& posted) const {
  return posted.last_batch != kNotCut &&
         std::all_of(batches_.begin(), batches_.end(), [&](const Batch& batch) {
           return batch.is_sent || batch.number > posted.last_batch;
         });
}

void Uploader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stopping_ || !uncut_.empty(); });
    if (uncut_.empty()) return;
    const Uncut& next = uncut_.front();
    const bool goes_on =
        open_ != nullptr && open_->region == next.region && open_->to + open_->bytes == next.to;
    if (!goes_on && !begin_batch(lock)) continue;
    const Slice slice = cut();
    lock.unlock();
    std::memcpy(slice.to, slice.from, slice.bytes);
    lock.lock();
    slice.batch->unfilled -= 1;
    if (slice.batch->unfilled == 0 && slice.batch->is_closed) send(*slice.batch, lock);
  }
}

// False: the mutex was given up, and things may be otherwise now. The first batches of all are
// small, so that the card soon has something to read.
bool Uploader::begin_batch(std::unique_lock<std::mutex>& lock) {
  if (Batch* const done = std::exchange(open_, nullptr)) {
    done->is_closed = true;
    if (done->unfilled == 0) {
      send(*done, lock);
      return false;
    }
  }
  open_ = take_free();
  if (open_ == nullptr) {
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
    return false;
  }
  open_->number = ++begun_;
  open_->begun = Clock::now();
  open_->to = uncut_.front().to;
  open_->region = uncut_.front().region;
  open_->bytes = 0;
  open_->room = next_room_;
  open_->is_closed = open_->is_sent = false;
  next_room_ = std::min(2 * next_room_, kBatchBytes);
  return true;
}

Uploader::Batch* Uploader::take_free() {
  while (!travelling_.empty()) {
    auto* const arrived = static_cast<cudaEvent_t>(travelling_.front()->arrived);
    if (cudaEventQuery(arrived) == cudaErrorNotReady) break;  // a failure is the next copy's, too
    free_.push_back(travelling_.front());
    travelling_.pop_front();
  }
  const auto late = std::count_if(batches_.begin(), batches_.end(), [&](const Batch& batch) {
    return !batch.is_sent && Clock::now() - batch.begun > kLate;
  });
  if (free_.empty() || free_.size() + static_cast<size_t>(late) <= kSpare) return nullptr;
  Batch* const batch = free_.back();
  free_.pop_back();
  return batch;
}

// The next slice of what is posted, for the open batch. That is closed when it is full, or when
// there is nothing that could go on.
Uploader::Slice Uploader::cut() {
  Uncut& next = uncut_.front();
  Batch& batch = *open_;
  const size_t bytes = std::min({next.bytes, batch.room / kSlices, batch.room - batch.bytes});
  const Slice slice{batch.data + batch.bytes, next.from, bytes, &batch};
  next.to += bytes;
  next.from += bytes;
  next.bytes -= bytes;
  batch.bytes += bytes;
  batch.unfilled += 1;
  if (next.bytes == 0) {
    next.whole->last_batch = batch.number;
    uncut_.pop_front();
  }
  if (batch.bytes == batch.room || uncut_.empty()) {
    batch.is_closed = true;
    open_ = nullptr;
  }
  return slice;
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
  unsent_ -= batch.bytes;
  travelling_.push_back(&batch);
  less_.notify_one();
}

}  // namespace tinyvllm
