// Reads the structure of one GGUF file (version 2 or 3, little-endian): metadata and the list of
// tensors, as views into the file's bytes. Trusts nothing: every count, length, dimension, offset
// and type is checked against the bytes that are there before it is used.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "io/gguf_pairs.h"
#include "io/metadata.h"
#include "io/weight_source.h"

namespace tinyvllm {

struct GgufContents {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<GgufPair> pairs;        // the same as it lies in `file`, for writing it elsewhere
  std::vector<WeightTensor> tensors;  // inside `file`, not overlapping, names distinct
};

Result<GgufContents> read_gguf(std::string_view file);

// The vocabulary among the metadata, or nothing when the file has none. Its long arrays move out of
// `metadata`. Lengths agree, ids are inside the vocabulary, scores are numbers.
Result<std::optional<GgufVocabulary>> take_gguf_vocabulary(Metadata& metadata);

}  // namespace tinyvllm
