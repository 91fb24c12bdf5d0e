// The card's memory. Weights are many and most are small, and a cudaMalloc takes as long as sending
// 10 MB: what is not large itself is cut off large regions, the first as large as what is expected.
// Small pieces come from a region's end, so that the large ones lie one behind the other and travel
// together. A region goes when its last piece does.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

struct CUstream_st;

namespace tinyvllm {

class CardMemory {
 public:
  struct Limits {
    double utilization = 0.9;  // of all there is, what may be used
    bool is_cut = true;        // else every piece has a region to itself
  };
  CardMemory(CUstream_st* ops, const Limits& limits) : ops_(ops), limits_(limits) {}
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;

  size_t available() const;
  // An error that says what is needed, what is there and what would help, where that is too little.
  Status check_room(size_t bytes, const std::string& what) const;
  // Zeros for whoever comes behind what `ops` has by now.
  Result<void*> allocate(size_t bytes, const std::string& what);
  // Not cleared, and a region to itself.
  Result<void*> allocate_as_it_is(size_t bytes, const std::string& what);
  void free(void* data);       // waits for `ops`, which may use it
  void free_idle(void* data);  // nobody uses it

  // Many pieces come, of so many bytes together. Where it fails, the memory is asked for again when
  // it is needed.
  bool expect(size_t bytes);
  void drop_expected();  // what did not come
  // Whether `ops` was given something to clear since this was last asked.
  bool take_clearing();
  const void* region_of(const void* data);  // where it begins

 private:
  struct Region {
    char* begin;
    size_t bytes;
    size_t used;         // from its beginning on
    size_t used_at_end;  // by small pieces
    size_t pieces;
  };
  void* cut(size_t bytes);
  bool add_to_cut(size_t wanted);
  Status clear(void* data, size_t bytes);
  void give_back(void* data, bool is_idle);
  std::vector<Region>::iterator find(const void* data);

  CUstream_st* const ops_;
  const Limits limits_;
  std::mutex mutex_;
  std::vector<Region> regions_;  // under it, like what follows
  char* cut_ = nullptr;          // the one that is being cut
  bool is_clearing_ = false;
};

}  // namespace tinyvllm
