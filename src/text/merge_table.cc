#include "text/merge_table.h"

namespace tinyvllm {

MergeTable::MergeTable(const std::vector<PairMerge>& merges) {
  size_t slots = 16;
  while (slots * 3 < merges.size() * 4) slots *= 2;
  slots_.resize(slots);
  // Every insertion is a cache miss; asking for the slot some insertions ahead hides most of that.
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i + kAhead < merges.size()) {
      const PairMerge& later = merges[i + kAhead];
      __builtin_prefetch(&slots_[hash_number(key(later.left, later.right)) & (slots - 1)], 1);
    }
    const PairMerge& pair = merges[i];
    const uint64_t wanted = key(pair.left, pair.right);
    const uint64_t hash = hash_number(wanted);
    slots_[slot_of(wanted, hash)] = {wanted, pair.merge};
    known_[hash >> (64 - kFilterBits)] = true;
  }
}

}  // namespace tinyvllm
