// A vocabulary of whole pieces: a piece is one token, or unknown.
#pragma once

#include <utility>

#include "text/token_model.h"
#include "text/vocabulary.h"

namespace tinyvllm {

class WordLevel : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, int32_t unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(unknown) {}

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    const int32_t id = vocabulary_.find(piece);
    ids.push_back(id == Vocabulary::kNone ? unknown_ : id);
  }
  size_t memory_bytes() const override { return vocabulary_.memory_bytes(); }

 private:
  Vocabulary vocabulary_;
  int32_t unknown_;
};

}  // namespace tinyvllm
