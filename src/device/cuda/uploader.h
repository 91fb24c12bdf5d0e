// Weights to the card, from where the host has them: a team of threads takes parts in turn, copies
// each into pinned memory of its own and sends it off, so that nobody waits for anybody else.
// Pinning takes longer than sending as many bytes, so there is little of it, and it happens beside
// whatever else a start has to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

struct CUstream_st;

namespace tinyvllm {

class Uploader {
 public:
  Uploader();  // begins to pin
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Copies on `stream`, some time before `drain` returns; `from` stays as it is until then. When
  // all of it is enqueued, `then` is called by one of the caller's next calls. One caller at a
  // time.
  Status post(void* to, const void* from, size_t bytes, CUstream_st* stream,
              std::function<void()> then);
  // All that was posted, but for the newest few, is enqueued, and behind it what was to come
  // `then`: for many of them at once, because the bus rests while the card does something else.
  Status drain(size_t newest = 0);
  // Gives the pinned memory and the threads back, until something is posted again.
  void rest();

 private:
  struct Posted {
    int parts;  // still to be enqueued
    std::function<void()> then;
  };
  struct Part {
    char* to;
    const char* from;
    size_t bytes;
    CUstream_st* stream;
    Posted* whole;
  };

  void start();
  Status pin();
  void unpin();
  void work(size_t thread);
  Status send(const Part& part, char* piece, void* sent);
  size_t part_bytes(size_t bytes) const;

  std::thread pinning_;  // or its opposite
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
