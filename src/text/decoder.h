// From tokens back to text. A decoder is a chain of steps; each takes a token's string when it
// comes and hands on what is certain, so that decoding a whole sequence and streaming it are one
// thing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace tinyvllm {

// One step of one sequence: strings in, strings out. `out` collects what goes to the next step.
class DecodeStage {
 public:
  using Tokens = std::vector<std::string>;

  virtual ~DecodeStage() = default;
  virtual void push(std::string token, Tokens& out) = 0;
  virtual void finish(Tokens&) {}  // the sequence is over: whatever was held back
};

// A step as the tokenizer's file describes it; makes a stage for each sequence.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual std::unique_ptr<DecodeStage> start() const = 0;

  // What the step makes of one token in the middle of a sequence; bytes, perhaps part of a
  // character.
  virtual std::string piece(std::string token) const = 0;
};
using DecodeChain = std::vector<std::unique_ptr<DecodeStep>>;

// Bytes from the byte alphabet; what is not UTF-8 becomes U+FFFD.
std::unique_ptr<DecodeStep> make_byte_level_decoder();

// "<0xE6>" tokens become the character that a run of them spells. A run that is not UTF-8 becomes
// one U+FFFD per byte, or (`lenient`) only its bad bytes do.
std::unique_ptr<DecodeStep> make_byte_fallback_decoder(bool lenient);

std::unique_ptr<DecodeStep> make_replace_decoder(std::string from, std::string to);
std::unique_ptr<DecodeStep> make_regex_replace_decoder(Regex regex, std::string to);

// Up to `start` and `stop` times `content` off the ends: of each token, or, after a step that fuses
// (`whole`), of the whole text.
std::unique_ptr<DecodeStep> make_strip_decoder(char32_t content, size_t start, size_t stop,
                                               bool whole);

// `mark` becomes a space; with `drop_first`, all of them in the first token go.
std::unique_ptr<DecodeStep> make_metaspace_decoder(std::string mark, bool drop_first);

// SentencePiece's way with "▁": the one that begins the text goes, and with `strip_all` every one
// before the first other text.
std::unique_ptr<DecodeStep> make_sentencepiece_decoder(bool strip_first, bool strip_all);

// `suffix` ends a word: a space, but nothing at the end of the text.
std::unique_ptr<DecodeStep> make_word_suffix_decoder(std::string suffix);

// A space between tokens, for tokenizers that have no decoder.
std::unique_ptr<DecodeStep> make_joining_decoder();

}  // namespace tinyvllm
