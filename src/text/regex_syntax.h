// Tokenizer files write their patterns for Oniguruma (in Ruby's dialect); PCRE2 runs them. Most of
// the two languages is the same, and what is not is rewritten here, or refused by name:
//   [a-z&&[^aeiou]]   sets have intersections and nested sets     → look-aheads and alternatives
//   \p{N}{1,3}+       repeats a counted repeat, is not possessive → (?:\p{N}{1,3})+
//   \w \b             have their own idea of a word               → spelled out
//   \h \v ^ $ (?m:)   mean something else                         → what they mean
//   \p{Han}           is the script, not its extensions           → \p{sc:Han}
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tinyvllm {

// The pattern for PCRE2 with UTF, UCP and MULTILINE, newline LF.
Result<std::string> translate_pattern(std::string_view pattern);

// A pattern that matches the text and nothing else.
std::string quote_pattern(std::string_view text);

}  // namespace tinyvllm
