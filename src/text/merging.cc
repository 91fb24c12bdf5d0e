#include "text/merging.h"

#include <algorithm>
#include <functional>

namespace tinyvllm {
namespace {

// Up to here, rescanning all ranks for the smallest beats keeping a heap.
constexpr size_t kScanLimit = 32;

void merge_by_scanning(const MergeTable& merges, std::vector<int32_t>& symbols) {
  int32_t* const symbol = symbols.data();
  size_t count = symbols.size();
  Merge pair[kScanLimit];  // pair[i]: the merge of symbols i and i+1
  for (size_t i = 0; i + 1 < count; ++i) pair[i] = merges.find(symbol[i], symbol[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pair[i].rank < pair[best].rank) best = i;
    }
    if (!pair[best].possible()) break;
    symbol[best] = pair[best].id;
    std::copy(symbol + best + 2, symbol + count, symbol + best + 1);
    std::copy(pair + best + 1, pair + count - 1, pair + best);
    count -= 1;
    if (best > 0) pair[best - 1] = merges.find(symbol[best - 1], symbol[best]);
    if (best + 1 < count) pair[best] = merges.find(symbol[best], symbol[best + 1]);
  }
  symbols.resize(count);
}

constexpr uint32_t kNone = UINT32_MAX;

// A symbol in a linked list, and the merge with the one after it.
struct Node {
  int32_t symbol;
  uint32_t previous, next;
  Merge merge;
};

// A possible merge as one number: rank first, then the place of its left symbol.
uint64_t candidate(uint32_t rank, uint32_t left) { return uint64_t{rank} << 32 | left; }

void merge_with_heap(const MergeTable& merges, std::vector<int32_t>& symbols) {
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(count);
  std::vector<uint64_t> heap;
  heap.reserve(count);
  const auto find_merge = [&](uint32_t left) {
    Node& node = nodes[left];
    node.merge = node.next == kNone ? Merge() : merges.find(node.symbol, nodes[node.next].symbol);
    return node.merge.possible();
  };

  for (uint32_t i = 0; i < count; ++i) {
    nodes[i] = {symbols[i], i == 0 ? kNone : i - 1, i + 1 < count ? i + 1 : kNone, Merge()};
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (find_merge(i)) heap.push_back(candidate(nodes[i].merge.rank, i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto offer = [&](uint32_t left) {
    if (!find_merge(left)) return;
    heap.push_back(candidate(nodes[left].merge.rank, left));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t best = heap.back();
    heap.pop_back();
    const auto at = static_cast<uint32_t>(best);
    Node& left = nodes[at];
    // A candidate is void once its left symbol is gone, or merges otherwise by now.
    if (left.merge.rank != best >> 32) continue;
    Node& right = nodes[left.next];
    left.symbol = left.merge.id;
    left.next = right.next;
    right.merge = Merge();
    if (left.next != kNone) nodes[left.next].previous = at;
    if (left.previous != kNone) offer(left.previous);
    offer(at);
  }

  symbols.clear();
  for (uint32_t i = 0; i != kNone; i = nodes[i].next) symbols.push_back(nodes[i].symbol);
}

}  // namespace

void merge_symbols(const MergeTable& merges, std::vector<int32_t>& symbols) {
  if (symbols.size() <= kScanLimit) {
    merge_by_scanning(merges, symbols);
  } else {
    merge_with_heap(merges, symbols);
  }
}

}  // namespace tinyvllm
