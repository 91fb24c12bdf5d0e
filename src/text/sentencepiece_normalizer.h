// SentencePiece's own normalizer: character replacements, and spaces to "▁" with one more in front.
#pragma once

#include <memory>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/sentencepiece.h"

namespace tinyvllm {

Result<std::unique_ptr<Normalizer>> make_sentencepiece_normalizer(
    const SentencePieceVocabulary& vocabulary);

}  // namespace tinyvllm
