// Byte-pair encoding: a piece starts as its characters (or bytes), and the adjacent pair whose
// merge comes first in the list is joined, leftmost first, until no pair is in the list.
//
// Byte-level vocabularies ("Ġthe") are kept as the bytes they stand for, so a piece of text is
// looked up as it is.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/merge_table.h"
#include "text/token_model.h"
#include "text/vocabulary.h"

namespace tinyvllm {

struct BpeOptions {
  bool byte_level = false;     // pieces and vocabulary are bytes, not characters
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
};

class Bpe : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, const BpeOptions& options, size_t id_count);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  // Whether merging a token's own text gives that token back: then a piece that spells it needs no
  // merging. Found out on first use, because checking all at load would take longer than loading.
  enum class Whole : uint8_t { kUnknown, kYes, kNo };

  void merge(std::string_view piece, std::vector<int32_t>& ids) const;
  void start_symbols(std::string_view piece, std::vector<int32_t>& symbols) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::array<int32_t, 256> byte_ids_;
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // [id_count]
};

}  // namespace tinyvllm
