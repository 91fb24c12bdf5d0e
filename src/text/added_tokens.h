// Tokens that are found in the text before anything else looks at it: control tokens
// ("<|im_start|>") and words that someone added to a finished vocabulary.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/span.h"
#include "text/token_matcher.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool special = false;      // a control token: text spells it only when the caller says so
  bool normalized = false;   // looked for in normalized text, in its normalized form
  bool single_word = false;  // only where it is a word of its own
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and the white space after it
};

class AddedTokens {
 public:
  // `pattern`: what to look for, which is the content, normalized if the token says so. Nothing is
  // looked for where that is empty or not UTF-8. Of two tokens with one pattern the last counts.
  void insert(const AddedToken& token, std::string_view pattern);

  struct Part {
    Span span;
    int32_t id = -1;  // -1: plain text
  };

  // Where control tokens count: everywhere or nowhere, or where the text is trusted.
  struct Rules {
    bool parse_special = false;
    const TrustedText* trusted = nullptr;
    size_t offset = 0;  // of the text in the one that `trusted` speaks of

    bool allow(const Span& span) const;
    size_t trusted_end(size_t at) const;   // of the trusted text around `at`; `at` if there is none
    size_t next_trusted(size_t at) const;  // where the next trusted text begins, behind `at`
  };

  // Cuts the text at the tokens that it spells: leftmost first, the longest of those that begin
  // there. `normalized`: whether the text is, and so which of the tokens are meant.
  std::vector<Part> split(std::string_view text, bool normalized, const Rules& rules) const;

  bool is_special(std::string_view content) const { return special_.contains(content); }
  bool has_normalized() const { return !normalized_.empty(); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  bool is_control(const AddedToken& token, const Rules& rules) const;
  TokenMatcher::Match match_at(const TokenMatcher& matcher, std::string_view text, size_t at,
                               const Rules& rules, size_t& resume) const;

  std::vector<AddedToken> tokens_;
  std::set<std::string, std::less<>> special_;  // contents of control tokens
  TokenMatcher plain_;                          // each value is an index into tokens_
  TokenMatcher normalized_;
};

}  // namespace tinyvllm
