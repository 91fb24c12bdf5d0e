// Weights to the card, from where the host has them: through batches of pinned memory, each of
// which a team of threads fills together, a slice at a time, and whoever fills the last one sends.
// A copy takes the card some microseconds besides its bytes, so what lies one behind the other on
// the card travels as one, whichever tensors it belongs to. Pinning takes longer than sending as
// many bytes, so there is little of it, and it happens beside whatever else a start has to do.
// Copies have a stream of their own, so that the bus does not rest while weights are packed; it
// carries nothing but copies (kernels on a second stream slow every graph down that comes later,
// copies do not) and is gone when the weights are there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
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

  // Copies some time before `drain` returns; `from` stays as it is until then. `region` is what
  // `to` was allocated in: no copy reaches from one into another. One caller at a time.
  Status post(void* to, const void* region, const void* from, size_t bytes, Then then);
  // What is posted from now on is copied behind all that `ops` has by now, or had at an event. What
  // was posted and is not yet sent may wait for that, too.
  Status go_behind_ops();
  Status go_behind(CUevent_st* event);
  // All that was posted, but for the newest few, is enqueued; `ops` waits for it, and `then`, which
  // is called now, enqueues there what is to be done with it.
  Status drain(size_t newest = 0);
  // Gives the pinned memory and the threads back, until something is posted again.
  void rest();

 private:
  struct Posted {
    uint64_t batches;  // so many were begun by then
    Then then;
  };
  struct Batch {
    char* data = nullptr;  // pinned
    uint64_t number = 0;
    char* to = nullptr;
    const void* region = nullptr;
    size_t bytes = 0;
    size_t room = 0;
    int unfilled = 0;  // slices
    bool is_closed = false;
    bool is_sent = true;
    void* arrived = nullptr;  // an event: its memory is free again
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
  Status open(char* to, const void* region);
  void close();
  Status follow(size_t count);
  bool is_sent(const Posted& posted) const;  // under the mutex
  void work();
  void send(Batch& batch, std::unique_lock<std::mutex>& lock);

  CUstream_st* ops_;
  CUstream_st* copies_ = nullptr;
  void* turn_ = nullptr;  // an event: one stream's word to the other
  std::thread pinning_;   // or its opposite
  bool resting_ = false;
  Status pinned_;  // how that went
  char* data_ = nullptr;
  bool is_registered_ = false;
  std::vector<Batch> batches_;
  Batch* open_ = nullptr;  // the last that was begun, while it may grow
  size_t next_room_;
  uint64_t begun_ = 0;  // batches
  std::deque<Posted> posted_;
  std::vector<std::thread> team_;

  std::mutex mutex_;
  std::condition_variable more_;  // slices, or the end
  std::condition_variable less_;  // a batch was sent
  std::deque<Slice> slices_;      // under the mutex, like all that follows
  std::deque<Batch*> reusable_;   // when they have arrived, which the first does first
  bool stopping_ = false;
  Status failure_;
};

}  // namespace tinyvllm
