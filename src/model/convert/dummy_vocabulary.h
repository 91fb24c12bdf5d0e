// A vocabulary for models without one: byte-level BPE of any size, complete (every text can be
// written) and valid for every reader of GGUF files, with a conversation format.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/gguf_pairs.h"

namespace tinyvllm {

// An error when `tokens` is too few for all bytes.
Status add_dummy_vocabulary(int64_t tokens, GgufPairs& pairs);

}  // namespace tinyvllm
