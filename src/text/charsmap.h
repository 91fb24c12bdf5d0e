// SentencePiece's compiled table of character replacements ("precompiled_charsmap"): a double-array
// trie from byte strings to what they become. The bytes come from a model file, so every step
// checks that it stays inside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

class Charsmap {
 public:
  // `bytes`: the trie's size, the trie, the replacements, as model files hold them. Empty: no
  // rules.
  static Result<Charsmap> parse(std::string_view bytes);

  struct Match {
    size_t length = 0;  // bytes of the text that are replaced; 0: no rule applies
    std::string_view replacement;
  };

  // The longest, or the shortest, beginning of the text that has a rule.
  Match longest(std::string_view text) const { return find(text, true); }
  Match shortest(std::string_view text) const { return find(text, false); }

  bool empty() const { return units_.empty(); }

 private:
  Match find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace tinyvllm
