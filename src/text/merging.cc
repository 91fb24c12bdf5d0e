#include "text/merging.h"

#include <algorithm>
#include <queue>

namespace tinyvllm {
namespace {

// Up to here, rescanning all ranks for the smallest beats keeping a heap.
constexpr size_t kScanLimit = 48;

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

constexpr int32_t kEnd = -1;
constexpr int32_t kGone = -2;  // as a symbol's `next`: it was merged into its left neighbour

struct Node {
  int32_t symbol;
  int32_t previous;
  int32_t next;
};

struct Candidate {
  uint32_t rank;
  int32_t left;  // index of the left symbol
  int32_t id;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

void merge_with_heap(const MergeTable& merges, std::vector<int32_t>& symbols) {
  std::vector<Node> nodes(symbols.size());
  std::vector<Candidate> heap_storage;
  heap_storage.reserve(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap(
      std::greater<>(), std::move(heap_storage));

  const auto offer = [&](int32_t left) {
    const Node& node = nodes[static_cast<size_t>(left)];
    if (node.next == kEnd) return;
    const Merge merge = merges.find(node.symbol, nodes[static_cast<size_t>(node.next)].symbol);
    if (merge.possible()) heap.push({merge.rank, left, merge.id});
  };

  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    nodes[static_cast<size_t>(i)] = {symbols[static_cast<size_t>(i)], i - 1,
                                     i + 1 < count ? i + 1 : kEnd};
  }
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);

  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Node& left = nodes[static_cast<size_t>(best.left)];
    if (left.next == kGone || left.next == kEnd) continue;
    Node& right = nodes[static_cast<size_t>(left.next)];
    // A candidate whose symbols have changed since it was offered is void.
    const Merge now = merges.find(left.symbol, right.symbol);
    if (now.rank != best.rank || now.id != best.id) continue;
    left.symbol = best.id;
    left.next = right.next;
    right.next = kGone;
    if (left.next != kEnd) nodes[static_cast<size_t>(left.next)].previous = best.left;
    if (left.previous != kEnd) offer(left.previous);
    offer(best.left);
  }

  symbols.clear();
  for (int32_t i = 0; i != kEnd; i = nodes[static_cast<size_t>(i)].next) {
    symbols.push_back(nodes[static_cast<size_t>(i)].symbol);
  }
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
