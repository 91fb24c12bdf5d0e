// What a split looks for in a text: a regular expression, a fixed string, or single characters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/span.h"

namespace tinyvllm {

class Pattern {
 public:
  virtual ~Pattern() = default;

  // Appends the matches in `text` (well-formed UTF-8), left to right, none overlapping.
  virtual void find_all(std::string_view text, std::vector<Span>& matches) const = 0;
};

Result<std::unique_ptr<Pattern>> make_regex_pattern(std::string_view expression);
Result<std::unique_ptr<Pattern>> make_string_pattern(std::string_view text);

// Every character that satisfies the predicate is a match of its own.
std::unique_ptr<Pattern> make_character_pattern(std::function<bool(char32_t)> predicate);

}  // namespace tinyvllm
