// Cutting text into the pieces that the model encodes one by one. A chain of steps, each of which
// may only cut finer (or change the text of) what the steps before it left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/regex.h"
#include "text/span.h"

namespace tinyvllm {

// A text and the parts of it that are pieces, in order. Text between spans was removed.
struct Pieces {
  std::string text;
  std::vector<Span> spans;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(Pieces& pieces) const = 0;
};

// Every match of the pattern is a piece, and so is the text between matches.
std::unique_ptr<PreTokenizer> make_isolating_split(Regex regex);

}  // namespace tinyvllm
