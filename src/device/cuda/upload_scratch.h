// Memory on the card for weights on their way, where they lie as the file has them until they are
// packed. Three areas, filled in turn: while one is, what lies in the one before arrives and what
// lies in the third is packed, so that the bus waits for neither.
#pragma once

#include <array>

#include "device/cuda/card_memory.h"
#include "device/cuda/uploader.h"

struct CUevent_st;

namespace tinyvllm {

class UploadScratch {
 public:
  UploadScratch(CUstream_st* ops, CardMemory& memory, Uploader& uploader)
      : ops_(ops), memory_(memory), uploader_(uploader) {}

  Status prepare();                  // takes the memory ahead
  Result<void*> take(size_t bytes);  // good until an upload's `then` has run
  void count_upload() { areas_[filled_].uploads += 1; }
  void release();  // when all are packed and the card has done it

 private:
  struct Area {
    char* data = nullptr;
    size_t bytes = 0;
    size_t used = 0;
    size_t uploads = 0;          // that were posted while it was filled
    CUevent_st* free = nullptr;  // its weights are packed
  };
  Status grow(Area& area, size_t bytes);
  Status fill_next();

  CUstream_st* const ops_;
  CardMemory& memory_;
  Uploader& uploader_;
  std::array<Area, 3> areas_;
  size_t filled_ = 0;
};

}  // namespace tinyvllm
