// Finds strings of a set in a text: at each place the longest that begins there. A trie whose edges
// lie in one flat hash table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

class TokenMatcher {
 public:
  // Strings are not empty; the last value for a string counts.
  void insert(std::string_view text, int32_t value);

  struct Match {
    size_t length = 0;  // 0: none
    int32_t value = -1;
  };
  Match longest_at(std::string_view text, size_t at) const;

  // Whether some string begins with this byte: a quick look before longest_at.
  bool begins(char byte) const { return begins_[static_cast<unsigned char>(byte)]; }
  bool empty() const { return nodes_ <= 1; }

 private:
  struct Edge {
    uint64_t key = UINT64_MAX;  // parent << 8 | byte
    uint32_t child = 0;
    int32_t value = -1;  // of the string that ends at the child
  };

  size_t slot_of(uint64_t key) const;
  void grow();

  std::vector<Edge> edges_ = std::vector<Edge>(64);  // a power of two, at most half in use
  uint32_t nodes_ = 1;                               // the root is 0
  std::array<bool, 256> begins_{};
};

}  // namespace tinyvllm
