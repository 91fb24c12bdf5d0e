// The names that GGUF files give to ways of splitting text (`tokenizer.ggml.pre`), and what each
// stands for.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer.h"

namespace tinyvllm {

struct GgufPreTokenizer {
  PreTokenizerChain steps;
  bool ignore_merges = false;
  bool add_bos = false;  // unless the file says otherwise
};

// An unknown name is an error that lists the known ones; none at all means "default".
Result<GgufPreTokenizer> make_gguf_pretokenizer(std::string_view name);

}  // namespace tinyvllm
