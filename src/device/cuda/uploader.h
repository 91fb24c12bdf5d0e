// Weights to the card, from where the host has them: a team of threads takes parts in turn, copies
// each into pinned memory of its own and sends it off, so that nobody waits for anybody else.
// Pinning takes longer than sending as many bytes, so there is little of it, and it happens beside
// whatever else a start has to do. Copies have a stream of their own, so that the bus does not rest
// while weights are packed; it carries nothing but copies (kernels on a second stream slow every
// graph down that comes later, copies do not) and is gone when the weights are there.
#pragma once

#include <condition_variable>
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

  // Copies some time before `drain` returns; `from` stays as it is until then. One caller at a
  // time.
  Status post(void* to, const void* from, size_t bytes, Then then);
  // What is posted from now on is copied behind all that `ops` has by now, or had at an event.
  Status go_behind_ops();
  Status go_behind(CUevent_st* event);
  // All that was posted, but for the newest few, is enqueued; `ops` waits for it, and `then`, which
  // is called now, enqueues there what is to be done with it.
  Status drain(size_t newest = 0);
  // Gives the pinned memory and the threads back, until something is posted again.
  void rest();

 private:
  struct Posted {
    int parts;  // still to be enqueued
    Then then;
  };
  struct Part {
    char* to;
    const char* from;
    size_t bytes;
    Posted* whole;
  };

  void start();
  Status wait_until_pinned();
  Status order(CUstream_st* before, CUstream_st* after);
  Status pin();
  void unpin();
  void work(size_t thread);
  Status send(const Part& part, char* piece, void* sent);
  size_t part_bytes(size_t bytes) const;

  CUstream_st* ops_;
  CUstream_st* copies_ = nullptr;
  void* turn_ = nullptr;  // an event: one stream's word to the other
  std::thread pinning_;   // or its opposite
  bool resting_ = false;
  Status pinned_;         // how that went
  char* data_ = nullptr;  // [threads, two pieces]
  bool is_registered_ = false;
  std::vector<void*> sent_;  // events: a piece is free again
  size_t begun_ = 0;         // parts since the card had nothing to read
  std::vector<std::thread> team_;

  std::mutex mutex_;
  std::condition_variable more_;  // parts, or the end
  std::condition_variable less_;  // parts wait, or an upload's last part was enqueued
  std::deque<Part> parts_;        // under the mutex, like all that follows
  std::deque<Posted> posted_;
  bool stopping_ = false;
  Status failure_;
};

}  // namespace tinyvllm
