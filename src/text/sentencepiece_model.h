// The SentencePiece file format (tokenizer.model, a protocol buffer), in plain form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/sentencepiece.h"

namespace tinyvllm {

// The views point into `bytes`.
Result<SentencePieceVocabulary> read_sentencepiece_model(std::string_view bytes);

}  // namespace tinyvllm
