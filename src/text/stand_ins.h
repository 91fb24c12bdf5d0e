// PCRE2 may know an older Unicode than a pattern was written for. Before it sees a text, each
// character that it may not know is replaced by a well-known one of the same kind and length, and
// U+180E, which it alone takes for a space, by another invisible one. A pattern may also name
// characters, as [ࠀ-一] does: a stand-in lies on the same side of all that it names.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace tinyvllm {

class StandIns {
 public:
  explicit StandIns(std::string_view pattern);

  // The text as PCRE2 may see it, where that is not the text itself.
  std::optional<std::string> put_into(std::string_view text) const;

 private:
  // Characters of three bytes between two that the pattern names.
  struct Stretch {
    char32_t begin;
    std::array<char32_t, 32> known = {};  // one of each category; 0: there is none
  };
  char32_t instead_of(char32_t c, Category category) const;

  std::vector<Stretch> stretches_;  // none: the pattern names no such character
};

}  // namespace tinyvllm
