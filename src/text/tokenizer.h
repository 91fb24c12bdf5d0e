// Text to token ids and back, exactly as the model was trained. One immutable object per model,
// safe to use from many threads; built from whatever the model's files carry
// (core/tokenizer_data.h).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/span.h"

namespace tinyvllm {

// Which parts of a text may become control tokens: those in which the whole token lies in one of
// the spans. Elsewhere its spelling is plain text.
struct TrustedText {
  std::vector<Span> spans;  // ascending, not touching each other
  // Added tokens that are no control tokens by themselves and yet are to be treated as such.
  const std::set<std::string, std::less<>>* control_words = nullptr;
};

struct EncodeOptions {
  bool add_special = true;     // BOS/EOS, where the model's files ask for them
  bool parse_special = false;  // whether text that spells a control token becomes that token
  const TrustedText* trusted = nullptr;  // if given, control tokens are parsed there and only there
};

// Text of a sequence that arrives token by token. What it appends is whole characters and final:
// all appended text, joined, is what Tokenizer::decode gives for all tokens.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual void push(int32_t id, std::string& out) = 0;
  virtual void finish(std::string& out) = 0;  // what still waited; the stream is at its start again
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  static Result<std::unique_ptr<Tokenizer>> create(const TokenizerData& data);

  // Never fails: bytes that are not UTF-8 are read as U+FFFD.
  virtual std::vector<int32_t> encode(std::string_view text,
                                      const EncodeOptions& options) const = 0;

  // The text of a whole sequence. Ids that do not exist decode to nothing.
  virtual std::string decode(const std::vector<int32_t>& ids, bool skip_special) const = 0;

  // The bytes that one token adds in the middle of a text: perhaps only part of a character.
  virtual std::string piece(int32_t id, bool skip_special) const = 0;

  // The same text as decode, as the tokens come. Must not outlive the tokenizer.
  virtual std::unique_ptr<TokenStream> stream(bool skip_special) const = 0;

  // Tokens that are found in text before anything else looks at it and are no control tokens.
  virtual std::vector<std::string> added_words() const = 0;

  virtual int32_t vocab_size() const = 0;
  virtual bool is_end(int32_t id) const = 0;  // eos, eot, eom, and what generation_config lists
  virtual const std::vector<int32_t>& end_ids() const = 0;
  virtual std::string kind() const = 0;     // "byte-level BPE (smollm)", for people
  virtual size_t memory_bytes() const = 0;  // of what grows with the vocabulary
};

}  // namespace tinyvllm
