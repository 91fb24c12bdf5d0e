// Regular expressions that model files carry, run by PCRE2 with its compiler. A pattern is
// untrusted: matching has a step limit, and text that runs into it counts as text without a match.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/span.h"

namespace tinyvllm {

class Regex {
 public:
  // Patterns are in the dialect of regex_syntax.h.
  static Result<Regex> compile(std::string_view pattern);

  // Appends the matches in `text` (well-formed UTF-8), left to right, none overlapping. `text` is
  // all that the pattern sees: its ends are the ends of the text to anchors and look-around.
  void find_all(std::string_view text, std::vector<Span>& matches) const;

  // `text` with `to`, as it stands, in place of every match.
  std::string replaced(std::string_view text, std::string_view to) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tinyvllm
