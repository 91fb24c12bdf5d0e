// The names that GGUF files give to ways of splitting text (`tokenizer.ggml.pre`), and what each
// stands for: the normalizer, the splits and the BPE options of the tokenizer.json that the file
// was made from, which GGUF does not carry.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"

namespace tinyvllm {

struct GgufPreTokenizer {
  NormalizerChain normalizers;
  PreTokenizerChain steps;
  bool in_byte_alphabet = false;  // the steps leave pieces in it; else they are bytes of text
  bool ignore_merges = false;
  bool add_bos = false;  // unless the file says otherwise
};

// One name of each way of splitting, the common ones first.
std::vector<std::string_view> gguf_pretokenizer_names();

// An unknown name is an error that lists the known ones; none at all means "default".
Result<GgufPreTokenizer> make_gguf_pretokenizer(std::string_view name);

}  // namespace tinyvllm
