// Weights to the card, from where the host has them: through batches of pinned memory, which a team
// of threads fills together, a slice at a time. A copy takes the card some microseconds besides its
// bytes, so what lies one behind the other on the card travels as one, whichever tensors it belongs
// to. Whoever comes along begins a batch, and whoever fills its last slice sends it, so that a
// thread that a busy host stops holds up its own batch and no other. Pinning takes longer than
// sending as many bytes, so there is little of it, and it happens beside whatever else a start has
// to do. So does filling it for the first time, when what comes first is foreseen: a team that is
// just waking up and memory that no cache has are slower than the bus. Copies have a stream of
// their own, so that the bus does not rest while weights are packed; it carries nothing but copies
// (kernels on a second stream slow every graph down that comes later, copies do not) and is gone
// when the weights are there.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"

struct CUevent_st;
struct CUstream_st;

namespace tinyvllm {

class Uploader {
 public:
  explicit Uploader(CUstream_st* ops);  // begins to pin
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Enqueues what is to be done with what has arrived. Several are called one after another, and
  // the last one of them is told so.
  using Then = std::function<void(bool is_last)>;

  // These are likely to be posted next, in this order, and are copied into pinned memory ahead,
  // unless something else is posted first. They stay as they are until they were posted, or
  // `forget` has returned.
  struct Source {
    const void* from;
    size_t bytes;
  };
  void foresee(std::span<const Source> sources);
  void forget();

  // Copies `bytes`, at least one, some time before `drain` returns; `from` stays as it is until
  // then. `region` is what `to` was allocated in: no copy reaches from one into another. One caller
  // at a time.
  Status post(void* to, const void* region, const void* from, size_t bytes, Then then);
  // What is posted from now on is copied behind all that `ops` has by now, or had at an event. What
  // was posted and is not yet sent may wait for that, too.
  Status go_behind_ops();
  Status go_behind(CUevent_st* event);
  // All that was posted, but for the newest few, is enqueued; `ops` waits for it, and `then`, which
  // is called now, enqueues there what is to be done with it. `news`, if any, hears now and then
  // what is still unsent.
  using News = std::function<void(size_t unsent)>;
  Status drain(size_t newest = 0, const News& news = nullptr);
  // Bytes that were posted and that the card was not yet told to fetch. For any thread.
  size_t unsent() const { return unsent_; }
  // Gives the pinned memory and the threads back, until something is posted again.
  void rest();

 private:
  using Clock = std::chrono::steady_clock;
  struct Upload {
    const char* from;
    size_t bytes;
    size_t cut = 0;      // bytes that a batch has
    char* to = nullptr;  // until it is posted
    const void* region = nullptr;
    Then then = nullptr;
    uint64_t last_batch = 0;  // that has some of it, once all of it is cut,
    size_t end = 0;           // up to here
  };
  struct Part {  // of a batch: up to where the next one begins
    size_t begin;
    const Upload* upload;
    size_t at;  // of the upload's bytes
  };
  struct Batch {
    char* data = nullptr;     // pinned
    void* arrived = nullptr;  // an event
    uint64_t number = 0;
    Clock::time_point begun;
    std::vector<Part> parts;  // that are not yet sent
    size_t bytes = 0;
    size_t room = 0;
    size_t sent = 0;   // bytes
    int unfilled = 0;  // slices
    bool is_closed = false;
    bool is_sending = false;
    bool is_sent = true;
  };
  struct Run {  // what travels as one copy
    char* to;
    const void* region;
    const char* from;
    size_t bytes;
  };
  struct Slice {
    char* to;
    const char* from;
    size_t bytes;
    Batch* batch;
  };

  void start();
  void settle();  // pins or gives back no more
  Status wait_until_pinned();
  Status order(CUstream_st* before, CUstream_st* after);
  Status pin();
  void unpin();
  Status follow(size_t count, const News& news);
  void work();
  Status copy(const Batch& batch, std::span<const Run> runs, bool is_last);
  // With the mutex:
  bool is_sent(const Upload& upload) const;
  bool can_cut() const;
  bool begin_batch(std::unique_lock<std::mutex>& lock);
  Batch* take_free();
  Slice cut();
  size_t posted_bytes(const Batch& batch) const;
  std::vector<Run> runs(const Batch& batch, size_t end) const;
  void send(Batch& batch, std::unique_lock<std::mutex>& lock);
  void send_all(std::unique_lock<std::mutex>& lock);
  void drop_foreseen(std::unique_lock<std::mutex>& lock);

  CUstream_st* ops_;
  CUstream_st* copies_ = nullptr;
  void* turn_ = nullptr;  // an event: one stream's word to the other
  std::thread pinning_;   // or its opposite
  bool resting_ = false;
  Status pinned_;  // how that went
  char* data_ = nullptr;
  bool is_registered_ = false;
  std::vector<std::thread> team_;

  std::atomic<size_t> unsent_ = 0;  // changes under the mutex
  std::mutex mutex_;
  std::condition_variable more_;  // uploads, or the end
  std::condition_variable less_;  // a batch was sent or filled
  std::deque<Upload> uploads_;    // under the mutex, like all that follows: posted ones, foreseen
  size_t posted_ = 0;             // of them, the first ones
  size_t next_ = 0;               // of them to be cut
  std::vector<Batch> batches_;
  std::vector<Batch*> free_;       // the last one is in the processor's cache
  std::deque<Batch*> travelling_;  // as they were sent
  Batch* open_ = nullptr;          // the last that was begun, while it may grow
  size_t next_room_;
  uint64_t begun_ = 0;  // batches
  bool stopping_ = false;
  bool draining_ = false;
  Status failure_;
};

}  // namespace tinyvllm
