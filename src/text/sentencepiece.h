// SentencePiece tokenizers: pieces with scores, spaces as "▁", bytes for what is not known. They
// come as a tokenizer.model and, as "llama" and "t5", in GGUF files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/pipeline.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct SentencePieceVocabulary {
  enum class Type : uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,  // found in the text before anything else
    kUnused = 5,
    kByte = 6,
  };
  struct Piece {
    std::string_view text;
    float score = 0;
    Type type = Type::kNormal;
  };

  std::vector<Piece> pieces;  // [id]
  bool is_bpe = false;        // else unigram
  bool byte_fallback = false;

  std::string_view charsmap;  // replacements of characters
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool space_is_suffix = false;
  std::string unknown_surface = " \u2047 ";  // what the unknown token decodes to
};

// A pipeline without BOS, EOS and end ids, which are for the caller to add, and without decoders.
// `source` stands before every error.
Result<PipelineParts> make_sentencepiece_parts(const SentencePieceVocabulary& vocabulary,
                                               std::string_view source);

// A tokenizer.model, with what the files beside it add.
Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(const TokenizerData& data);

}  // namespace tinyvllm
