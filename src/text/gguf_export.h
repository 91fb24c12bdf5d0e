// A Hugging Face tokenizer as the vocabulary of a GGUF file. What GGUF says by a name or a flag
// (how text is split, whether a space is put in front) is found by trying: the export is read back,
// and the reading that makes the same tokens of a difficult text is the right one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"

namespace tinyvllm {

// GgufVocabulary with strings of its own.
struct ExportedVocabulary {
  std::string model;  // "gpt2", "llama"
  std::string pre;
  std::vector<std::string> tokens;  // [id]
  std::vector<int32_t> types;       // [id]
  std::vector<float> scores;        // [id], or empty
  std::vector<std::string> merges;
  std::optional<int64_t> bos, eos, unknown;
  bool add_bos = false;
  bool add_eos = false;
  std::optional<bool> add_space_prefix;

  GgufVocabulary view() const;  // good while this stays as it is
};

// `vocab_size` is the number of rows of the embedding: ids without a token get a filler. An error
// when no GGUF vocabulary tokenizes like these files.
Result<ExportedVocabulary> export_vocabulary(const TokenizerData& data, int64_t vocab_size);

}  // namespace tinyvllm
