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
  std::unique_lock lock(mutex_);
  batches_.resize(kBatches);
  for (size_t i = 0; i < kBatches; ++i) {
    cudaEvent_t event = nullptr;
    TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
    batches_[i].data = data_ + i * kBatchBytes;
    batches_[i].arrived = event;
    free_.push_back(&batches_[i]);
  }
  lock.unlock();
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
  const std::scoped_lock lock(mutex_);
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
  forget();
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

void Uploader::foresee(std::span<const Source> sources) {
  forget();
  if (resting_) {
    settle();
    resting_ = false;
    start();
  }
  {
    const std::scoped_lock lock(mutex_);
    for (const Source& source : sources) {
      if (source.bytes == 0) continue;
      uploads_.push_back({static_cast<const char*>(source.from), source.bytes});
    }
  }
  more_.notify_all();
}

void Uploader::forget() {
  std::unique_lock lock(mutex_);
  drop_foreseen(lock);
  less_.wait(lock, [&] {
    return std::all_of(batches_.begin(), batches_.end(),
                       [](const Batch& batch) { return batch.unfilled == 0; });
  });
}

Status Uploader::post(void* to, const void* region, const void* from, size_t bytes, Then then) {
  CHECK(bytes > 0);
  TRY(wait_until_pinned());
  bool is_time = false;
  {
    std::unique_lock lock(mutex_);
    if (posted_ < uploads_.size() &&
        (uploads_[posted_].from != from || uploads_[posted_].bytes != bytes)) {
      drop_foreseen(lock);
    }
    if (posted_ == uploads_.size()) uploads_.push_back({static_cast<const char*>(from), bytes});
    Upload& upload = uploads_[posted_++];
    upload.to = static_cast<char*>(to);
    upload.region = region;
    upload.then = std::move(then);
    unsent_ += bytes;
    if (upload.cut > 0) send_all(lock);
    is_time = posted_ >= kAtOnce && is_sent(uploads_[kAtOnce - 1]);
    if (can_cut()) more_.notify_all();  // waking a team takes as long as sending a megabyte
  }
  // So that what is done with the first ones is done while the others travel.
  return is_time ? follow(kAtOnce, nullptr) : Status();
}

// When something failed, too, nobody reads or sends what was posted once this has returned.
Status Uploader::drain(size_t newest, const News& news) {
  settle();
  std::unique_lock lock(mutex_);
  draining_ = true;
  if (newest == 0) drop_foreseen(lock);
  send_all(lock);
  lock.unlock();
  Status followed;
  while (followed.ok() && posted_ > newest) {
    followed = follow(std::min(posted_ - newest, kAtOnce), news);
    if (news) news(unsent_);
  }
  lock.lock();
  draining_ = false;
  if (followed.ok() && newest > 0) return followed;
  drop_foreseen(lock);  // a failure, which ends everything
  less_.wait(lock, [&] {
    return next_ == uploads_.size() &&
           std::all_of(batches_.begin(), batches_.end(),
                       [](const Batch& batch) { return batch.is_sent; });
  });
  uploads_.clear();
  posted_ = next_ = 0;
  next_room_ = kFirstBytes;
  return followed.ok() ? failure_ : followed;
}

// Waits until the oldest ones are sent.
Status Uploader::follow(size_t count, const News& news) {
  std::vector<Upload> oldest;
  {
    std::unique_lock lock(mutex_);
    while (!less_.wait_for(lock, kNewsAfter, [&] { return is_sent(uploads_[count - 1]); })) {
      if (!news) continue;
      lock.unlock();
      news(unsent_);
      lock.lock();
    }
    TRY(failure_);
    const auto end = uploads_.begin() + static_cast<ptrdiff_t>(count);
    oldest.assign(std::move_iterator(uploads_.begin()), std::move_iterator(end));
    uploads_.erase(uploads_.begin(), end);
    posted_ -= count;
    next_ -= count;
  }
  TRY(order(copies_, ops_));
  for (const Upload& upload : oldest) upload.then(&upload == &oldest.back());
  return Status();
}

bool Uploader::is_sent(const Upload& upload) const {
  return upload.cut == upload.bytes &&
         std::all_of(batches_.begin(), batches_.end(), [&](const Batch& batch) {
           return batch.is_sent || batch.number > upload.last_batch ||
                  (batch.number == upload.last_batch && batch.sent >= upload.end);
         });
}

void Uploader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stopping_ || can_cut(); });
    if (!can_cut()) return;
    if (open_ == nullptr && !begin_batch(lock)) continue;
    const Slice slice = cut();
    lock.unlock();
    std::memcpy(slice.to, slice.from, slice.bytes);
    lock.lock();
    slice.batch->unfilled -= 1;
    send(*slice.batch, lock);
  }
}

// Not where all batches are full of what is foreseen: until some of it is posted, none comes back.
bool Uploader::can_cut() const {
  return next_ < uploads_.size() && (open_ != nullptr || !free_.empty() || !travelling_.empty());
}

// False: the mutex was given up, and things may be otherwise now. The first batches of all are
// small, so that the card soon has something to read, unless there is time before it may.
bool Uploader::begin_batch(std::unique_lock<std::mutex>& lock) {
  Batch* const batch = take_free();
  if (batch == nullptr) {
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
    return false;
  }
  const bool is_posted = next_ < posted_;
  batch->number = ++begun_;
  batch->begun = Clock::now();
  batch->parts.clear();
  batch->bytes = batch->sent = 0;
  batch->room = is_posted ? next_room_ : kBatchBytes;
  batch->is_closed = batch->is_sent = false;
  next_room_ = is_posted ? std::min(2 * next_room_, kBatchBytes) : kBatchBytes;
  open_ = batch;
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
    const bool is_full = batch.unfilled == 0 && batch.is_closed;  // and not posted
    return !batch.is_sent && (is_full || Clock::now() - batch.begun > kLate);
  });
  if (free_.empty() || free_.size() + static_cast<size_t>(late) <= kSpare) return nullptr;
  Batch* const batch = free_.back();
  free_.pop_back();
  return batch;
}

// The next slice of what is to come, for the open batch. That is closed when it is full, or when
// there is nothing that could go on.
Uploader::Slice Uploader::cut() {
  Upload& next = uploads_[next_];
  Batch& batch = *open_;
  const size_t bytes =
      std::min({next.bytes - next.cut, batch.room / kSlices, batch.room - batch.bytes});
  const Slice slice{batch.data + batch.bytes, next.from + next.cut, bytes, &batch};
  if (batch.parts.empty() || batch.parts.back().upload != &next) {
    batch.parts.push_back({batch.bytes, &next, next.cut});
  }
  next.cut += bytes;
  batch.bytes += bytes;
  batch.unfilled += 1;
  if (next.cut == next.bytes) {
    next.last_batch = batch.number;
    next.end = batch.bytes;
    next_ += 1;
  }
  if (batch.bytes == batch.room || next_ == uploads_.size()) {
    batch.is_closed = true;
    open_ = nullptr;
  }
  return slice;
}

// Those of a batch's bytes whose place on the card is known: the first ones.
size_t Uploader::posted_bytes(const Batch& batch) const {
  for (const Part& part : batch.parts) {
    if (part.upload->to == nullptr) return part.begin;
  }
  return batch.bytes;
}

// Its parts up to `end`, where one begins.
std::vector<Uploader::Run> Uploader::runs(const Batch& batch, size_t end) const {
  std::vector<Run> runs;
  for (size_t i = 0; i < batch.parts.size() && batch.parts[i].begin < end; ++i) {
    const Part& part = batch.parts[i];
    const size_t part_end = i + 1 < batch.parts.size() ? batch.parts[i + 1].begin : end;
    const size_t bytes = part_end - part.begin;
    char* const place = part.upload->to + part.at;
    Run* const last = runs.empty() ? nullptr : &runs.back();
    if (last != nullptr && last->region == part.upload->region && last->to + last->bytes == place) {
      last->bytes += bytes;
    } else {
      runs.push_back({place, part.upload->region, batch.data + part.begin, bytes});
    }
  }
  return runs;
}

// What of it can be: all, when it is closed, or what was posted, when somebody waits for that and
// the rest of it is only foreseen.
void Uploader::send(Batch& batch, std::unique_lock<std::mutex>& lock) {
  while (batch.unfilled == 0 && !batch.is_sending && !batch.is_sent) {
    const size_t end = posted_bytes(batch);
    const bool is_last = batch.is_closed && end == batch.bytes;
    const bool is_awaited = draining_ && end < batch.bytes && end > batch.sent;
    if (!is_last && !is_awaited) break;
    const std::vector<Run> runs = this->runs(batch, end);
    batch.is_sending = true;
    lock.unlock();
    Status sent = copy(batch, runs, is_last);
    lock.lock();
    batch.is_sending = false;
    if (!sent.ok() && failure_.ok()) failure_ = std::move(sent);
    unsent_ -= end - batch.sent;
    batch.sent = end;
    std::erase_if(batch.parts, [&](const Part& part) { return part.begin < end; });
    batch.is_sent = is_last;
    if (is_last) travelling_.push_back(&batch);
    if (can_cut()) more_.notify_all();
  }
  less_.notify_one();
}

void Uploader::send_all(std::unique_lock<std::mutex>& lock) {
  for (Batch& batch : batches_) send(batch, lock);
}

Status Uploader::copy(const Batch& batch, std::span<const Run> runs, bool is_last) {
  Status sent;
  for (const Run& run : runs) {
    if (!sent.ok()) break;
    sent = check(cudaMemcpyAsync(run.to, run.from, run.bytes, cudaMemcpyHostToDevice, copies_),
                 "an upload");
  }
  if (!is_last) return sent;
  // Where a copy failed, too: those before it may still be read from.
  const Status noted =
      check(cudaEventRecord(static_cast<cudaEvent_t>(batch.arrived), copies_), "an upload");
  return sent.ok() ? noted : sent;
}

// What was not posted is as if it had never been foreseen.
void Uploader::drop_foreseen(std::unique_lock<std::mutex>& lock) {
  for (Batch& batch : batches_) {
    if (batch.is_sent || posted_bytes(batch) == batch.bytes) continue;
    batch.bytes = posted_bytes(batch);
    std::erase_if(batch.parts, [](const Part& part) { return part.upload->to == nullptr; });
    batch.is_closed = true;
    if (open_ == &batch) open_ = nullptr;
  }
  uploads_.erase(uploads_.begin() + static_cast<ptrdiff_t>(posted_), uploads_.end());
  next_ = std::min(next_, posted_);
  if (open_ != nullptr && next_ == uploads_.size()) {
    open_->is_closed = true;
    open_ = nullptr;
  }
  send_all(lock);
}

}  // namespace tinyvllm
