// Where a text can be cut before merging: between two characters that no token holds side by side,
// no merge can ever reach across, so what lies left and right can be encoded on its own. That turns
// sentences without spaces into short pieces, most of which are tokens as they stand.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

class Seams {
 public:
  // Tells of a token, as bytes of text. One that was never told of may be cut through.
  void add_token(std::string_view bytes);

  // End of the part that begins at text[begin]: the next place to cut, or the end of the text. The
  // text is well-formed UTF-8.
  size_t next_cut(std::string_view text, size_t begin) const;

  size_t memory_bytes() const { return (pairs_.size() + fragments_.size()) / 8; }

 private:
  // Sets of bits instead of exact tables: a wrong "joined" costs time, never a wrong token.
  static constexpr size_t kPairBits = 20;
  std::vector<bool> pairs_ = std::vector<bool>(size_t{1} << kPairBits);  // whole characters
  // Bytes that meet in tokens which begin or end inside a character.
  std::vector<bool> fragments_ = std::vector<bool>(1 << 16);
};

}  // namespace tinyvllm
