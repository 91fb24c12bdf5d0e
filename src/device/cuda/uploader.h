// The host's memory to the card, through a ring of pinned pieces: a team of threads fills one while
// others are on their way. Pinning takes longer than sending as many bytes, so there is little of
// it, and it happens beside whatever else a start has to do.
#pragma once

#include <memory>
#include <thread>

#include "base/result.h"
#include "base/thread_pool.h"

struct CUstream_st;

namespace tinyvllm {

class Uploader {
 public:
  Uploader();  // begins to pin
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  // Enqueues the copy; `from` has been read when it returns. One caller at a time.
  Status upload(void* to, const void* from, size_t bytes, CUstream_st* stream);

 private:
  static constexpr int kPieces = 4;

  Status pin();
  Status next_piece(CUstream_st* stream);
  void fill(char* to, const char* from, size_t bytes);

  std::thread pinning_;
  Status pinned_;         // how that went
  char* data_ = nullptr;  // [pieces, bytes of one]
  bool is_registered_ = false;
  void* copied_[kPieces] = {};  // events: a piece is free again
  int piece_ = 0;
  size_t used_ = 0;  // of that piece
  std::unique_ptr<ThreadPool> copiers_;
};

}  // namespace tinyvllm
