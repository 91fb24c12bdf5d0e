// Which pairs of tokens merge, how early, and into what: a flat hash table from (left, right).
#pragma once

#include <cstdint>
#include <vector>

#include "text/hash.h"

namespace tinyvllm {

struct Merge {
  static constexpr uint32_t kNever = UINT32_MAX;

  uint32_t rank = kNever;  // position in the list of merges; lower merges first
  int32_t id = -1;         // of the token that the pair becomes

  bool possible() const { return rank != kNever; }
};

struct PairMerge {
  int32_t left, right;
  Merge merge;
};

class MergeTable {
 public:
  // Of equal pairs the last one counts.
  explicit MergeTable(const std::vector<PairMerge>& merges);

  Merge find(int32_t left, int32_t right) const {
    const uint64_t wanted = key(left, right);
    const uint64_t hash = hash_number(wanted);
    // Most pairs merge to nothing, and the filter that says so fits in the nearest cache.
    if (!known_[hash >> (64 - kFilterBits)]) return Merge();
    return slots_[slot_of(wanted, hash)].merge;
  }
  size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot) + known_.size() / 8; }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr size_t kFilterBits = 20;
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].key != key && slots_[at].key != kFree) at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
  std::vector<bool> known_ = std::vector<bool>(size_t{1} << kFilterBits);
};

}  // namespace tinyvllm
