// Byte-pair encoding: a piece starts as its characters (or bytes), and the adjacent pair whose
// merge comes first in the list is joined, leftmost first, until no pair is in the list.
//
// Byte-level vocabularies ("Ġthe") are kept as the bytes they stand for, so a piece of text is
// looked up as it is.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/seams.h"
#include "text/token_model.h"
#include "text/vocabulary.h"

namespace tinyvllm {

struct BpeOptions {
  bool byte_level = false;     // pieces start as bytes, not as characters
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  bool byte_fallback = false;  // a character that is no token becomes its bytes: "<0xE6>"…
  bool fuse_unknown = false;   // and otherwise unknown, of which several in a row count as one
  int32_t unknown = Vocabulary::kNone;  // without it, what is not known is left out
  std::string continuing_prefix;        // before every character but the first
  std::string word_suffix;              // after the last
};

class Bpe : public TokenModel {
 public:
  // `id_count`: all ids are less.
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, size_t id_count);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;
  size_t memory_bytes() const override {
    return vocabulary_.memory_bytes() + merges_.memory_bytes() + seams_.memory_bytes() + id_count_;
  }

 private:
  // Whether merging a token's own text gives that token back: then a piece that spells it needs no
  // merging. Found out on first use, because checking all at load would take longer than loading.
  enum class Whole : uint8_t { kUnknown, kYes, kNo };

  bool knows_every_character() const;
  void merge_parts(std::string_view piece, std::vector<int32_t>& ids) const;
  void encode_part(std::string_view part, int32_t id, std::vector<int32_t>& ids) const;
  void merge(std::string_view piece, std::vector<int32_t>& ids) const;
  void start_symbols(std::string_view piece, std::vector<int32_t>& symbols) const;
  int32_t find_character(std::string_view character, bool first, bool last) const;
  bool append_bytes(std::string_view character, std::vector<int32_t>& symbols) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  Seams seams_;
  BpeOptions options_;
  std::array<int32_t, 256> byte_ids_;      // of single bytes
  std::array<int32_t, 256> fallback_ids_;  // of "<0x00>"…
  bool can_cut_;  // whether the seams hold: no character is left out or joined to its like
  size_t id_count_;
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // [id_count_], a byte each
};

}  // namespace tinyvllm
