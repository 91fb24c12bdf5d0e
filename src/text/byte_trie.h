// A trie over a vocabulary's bytes that lists every token a text begins with. Built once from all
// strings; nodes of one parent lie next to each other, in order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  ByteTrie() = default;
  // texts[i] leads to i. Empty strings lead nowhere; of equal strings the last counts.
  explicit ByteTrie(const std::vector<std::string_view>& texts);

  size_t memory_bytes() const { return nodes_.capacity() * sizeof(Node); }

  // visit(length, index) for each string that `text` begins with, shortest first.
  template <class Visit>
  void visit_prefixes(std::string_view text, const Visit& visit) const {
    if (text.empty()) return;
    uint32_t node = root_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (nodes_[node].value != kNone) visit(length, nodes_[node].value);
      if (length == text.size()) return;
      node = child(nodes_[node], static_cast<unsigned char>(text[length]));
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;
    uint16_t child_count = 0;
    uint8_t byte = 0;
    int32_t value = kNone;
  };

  // 0 when there is none. Few nodes have many children, so a look at one after another is quickest.
  uint32_t child(const Node& node, unsigned char byte) const {
    uint32_t at = node.first_child;
    uint32_t count = node.child_count;
    while (count > 8) {
      const uint32_t half = count / 2;
      if (nodes_[at + half].byte <= byte) at += half;
      count -= half;
    }
    for (; count > 0; --count, ++at) {
      if (nodes_[at].byte == byte) return at;
    }
    return 0;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);  // node 0 is the root
  std::array<uint32_t, 256> root_{};                // children of the root, by byte
};

}  // namespace tinyvllm
