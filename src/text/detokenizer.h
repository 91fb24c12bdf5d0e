// An answer's text as its tokens come, for one sequence on one thread: whole characters only,
// nothing is ever taken back, and text that may be the beginning of a stop string waits until that
// is clear. Work per token does not grow with the length of the answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct DetokenizerOptions {
  bool skip_special = true;
  std::vector<std::string> stop;  // empty strings among them count for nothing
  bool include_stop = false;      // whether the stop string that was met is part of the text
};

class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, const DetokenizerOptions& options);

  // The text that is certain now and was not before. Nothing more comes once a stop string was met.
  std::string push(int32_t token);
  std::string finish();  // the tokens are over: whatever was held back

  bool stopped() const { return stops_.stopped(); }
  const std::string& stop_string() const { return stops_.met(); }  // the one met; empty before

 private:
  std::unique_ptr<TokenStream> stream_;
  StopStrings stops_;
};

}  // namespace tinyvllm
