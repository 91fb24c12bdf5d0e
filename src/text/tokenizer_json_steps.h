// The small parts of a tokenizer.json: normalizers, pre-tokenizers, post-processors and decoders,
// each an object with a "type". What is not known is an error that lists what is.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "text/decoder.h"
#include "text/json.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"

namespace tinyvllm {

Status read_normalizer(const Json& json, NormalizerChain& chain);

struct JsonPreTokenizers {
  PreTokenizerChain chain;
  // Whether pieces are to be written in the byte alphabet, as the last step of all. That is left to
  // the caller, because a model that keeps its vocabulary as bytes can do without.
  bool byte_level = false;
};
Status read_pretokenizer(const Json& json, JsonPreTokenizers& result);

struct SpecialIds {
  std::vector<int32_t> prefix, suffix;  // around a single text
};
Status read_post_processor(const Json& json, SpecialIds& ids);

Status read_decoder(const Json& json, DecodeChain& chain);

}  // namespace tinyvllm
