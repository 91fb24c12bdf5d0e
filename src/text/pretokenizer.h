// Cutting text into the pieces that the model encodes one by one. A chain of steps, each of which
// may only cut finer (or change the text of) what the steps before it left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/pattern.h"
#include "text/span.h"

namespace tinyvllm {

// A text and the parts of it that are pieces, in order. Text between spans was removed.
struct Pieces {
  std::string text;
  std::vector<Span> spans;
  bool starts_input = true;  // whether text[0] is the first character that the caller gave
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(Pieces& pieces) const = 0;
};
using PreTokenizerChain = std::vector<std::unique_ptr<PreTokenizer>>;

// What becomes of a match that cuts a piece in two.
enum class SplitBehavior {
  kRemoved,
  kIsolated,            // a piece of its own
  kMergedWithPrevious,  // the end of the piece before it
  kMergedWithNext,      // the beginning of the piece after it
  kContiguous,          // one piece with the matches next to it
};

// With `invert`, what is not matched counts as the match.
std::unique_ptr<PreTokenizer> make_split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior,
                                         bool invert = false);

// A fixed number of characters at a time.
std::unique_ptr<PreTokenizer> make_fixed_length(size_t characters);

// Puts a space before every piece that does not begin with one.
std::unique_ptr<PreTokenizer> make_prefix_space();

// Writes every piece in the byte alphabet. Models that keep their vocabulary as bytes do without.
std::unique_ptr<PreTokenizer> make_byte_alphabet_pieces();

// Spaces become `replacement`, and a piece begins before each one.
struct MetaspaceOptions {
  enum class Prepend { kNever, kAlways, kFirst };

  std::string replacement = "▁";
  Prepend prepend = Prepend::kAlways;  // one more in front of a piece that has none
  bool split = true;
};
std::unique_ptr<PreTokenizer> make_metaspace(MetaspaceOptions options);

}  // namespace tinyvllm
