// Tokens that are found in the text before anything else looks at it: control tokens
// ("<|im_start|>") and words that someone added to a finished vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/span.h"

namespace tinyvllm {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool special = false;  // a control token: text spells it only when the caller says so
};

class AddedTokens {
 public:
  struct Part {
    Span span;
    int32_t id = -1;  // -1: plain text
  };

  void insert(AddedToken token);

  // Cuts the text at the tokens that it spells: leftmost first, the longest of those that begin
  // there.
  std::vector<Part> split(std::string_view text, bool parse_special) const;

  bool is_special(int32_t id) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  // A trie of all contents, one node per prefix; node 0 is the root.
  struct Node {
    std::unordered_map<unsigned char, uint32_t> children;
    int32_t token = -1;  // index into tokens_
  };

  // The longest token that begins at text[at], or -1.
  int32_t longest_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::vector<Node> trie_{1};
  std::array<bool, 256> begins_{};  // bytes that some token begins with
};

}  // namespace tinyvllm
