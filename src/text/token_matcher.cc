#include "text/token_matcher.h"

#include <utility>

#include "text/hash.h"

namespace tinyvllm {
namespace {

uint64_t key_of(uint32_t parent, char byte) {
  return uint64_t{parent} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

void TokenMatcher::insert(std::string_view text, int32_t value) {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (nodes_ * size_t{2} >= edges_.size()) grow();
    const uint64_t key = key_of(node, text[i]);
    Edge& edge = edges_[slot_of(key)];
    if (edge.key != key) edge = {key, nodes_++, -1};
    node = edge.child;
    if (i + 1 == text.size()) edge.value = value;
  }
  begins_[static_cast<unsigned char>(text[0])] = true;
}

TokenMatcher::Match TokenMatcher::longest_at(std::string_view text, size_t at) const {
  Match match;
  uint32_t node = 0;
  for (size_t length = 1; at + length <= text.size(); ++length) {
    const uint64_t key = key_of(node, text[at + length - 1]);
    const Edge& edge = edges_[slot_of(key)];
    if (edge.key != key) break;
    if (edge.value >= 0) match = {length, edge.value};
    node = edge.child;
  }
  return match;
}

size_t TokenMatcher::slot_of(uint64_t key) const {
  const size_t mask = edges_.size() - 1;
  size_t at = hash_number(key) & mask;
  while (edges_[at].key != key && edges_[at].key != UINT64_MAX) at = (at + 1) & mask;
  return at;
}

void TokenMatcher::grow() {
  std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  for (const Edge& edge : old) {
    if (edge.key != UINT64_MAX) edges_[slot_of(edge.key)] = edge;
  }
}

}  // namespace tinyvllm
