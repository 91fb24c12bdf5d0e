// Unigram language model: of all ways to cut a piece into tokens, the one with the best sum of
// scores (Viterbi). A character that is no token counts as unknown, at a price.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/token_model.h"

namespace tinyvllm {

// Sums differ in their last bits between the two implementations that models were trained for, and
// ties are decided by them.
enum class UnigramArithmetic {
  kDouble,         // the `tokenizers` package: 64 bits
  kSentencePiece,  // 32 bits, and a range of scores that leaves control tokens out
};

struct UnigramToken {
  enum class Kind : uint8_t { kNormal, kUserDefined, kNever };

  std::string_view text;  // must live as long as the constructor runs
  double score = 0;
  Kind kind = Kind::kNormal;
};

struct UnigramOptions {
  UnigramArithmetic arithmetic = UnigramArithmetic::kDouble;
  bool byte_fallback = false;  // unknown characters become their bytes: "<0xE6>"…
  int32_t unknown = -1;        // without it, what is not known is left out
};

class Unigram : public TokenModel {
 public:
  // tokens[id]
  Unigram(const std::vector<UnigramToken>& tokens, const UnigramOptions& options);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;
  size_t memory_bytes() const override {
    return entries_.capacity() * sizeof(Entry) + trie_.memory_bytes();
  }

 private:
  struct Step;  // the best way to get to a place in the piece

  template <class Number>
  std::vector<Step> best_steps(std::string_view piece) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  struct Entry {
    double score;
    UnigramToken::Kind kind;
  };
  UnigramOptions options_;
  std::vector<Entry> entries_;  // [id]
  ByteTrie trie_;
  double unknown_score_ = 0;
  double best_score_ = 0;
  std::array<int32_t, 256> fallback_ids_;  // of "<0x00>"…, -1 where there is none
};

}  // namespace tinyvllm
