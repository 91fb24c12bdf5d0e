// The tokenizer that every source of vocabulary is built into:
//
//   text → cut out added tokens → normalize → cut out added tokens that are normalized
//        → split into pieces → the model's ids for each piece → BOS and EOS around all
//
// and back through the tokens' strings and a chain of decoding steps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/token_model.h"
#include "text/token_texts.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct PipelineParts {
  std::string kind;
  AddedTokens added;
  NormalizerChain normalizers;
  PreTokenizerChain pretokenizers;
  std::unique_ptr<TokenModel> model;
  DecodeChain decoders;

  TokenTexts texts;                  // what decoding starts from
  std::vector<bool> special;         // [vocab_size], what decoding leaves out on demand
  bool left_out_ends_bytes = false;  // and ends a run of byte tokens nevertheless
  std::vector<int32_t> prefix_ids;   // put before and after every text when add_special is on
  std::vector<int32_t> suffix_ids;
  std::vector<int32_t> end_ids;  // sorted
};

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}

  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const override;
  std::string piece(int32_t id, bool skip_special) const override;
  std::unique_ptr<TokenStream> stream(bool skip_special) const override;

  std::vector<std::string> added_words() const override;
  int32_t vocab_size() const override { return parts_.texts.size(); }
  bool is_end(int32_t id) const override;
  const std::vector<int32_t>& end_ids() const override { return parts_.end_ids; }
  std::string kind() const override { return parts_.kind; }
  size_t memory_bytes() const override {
    return parts_.texts.memory_bytes() + parts_.model->memory_bytes() + parts_.special.size() / 8;
  }

 private:
  class Stream;

  void encode_plain(std::string_view text, const Span& part, const EncodeOptions& options,
                    std::vector<int32_t>& ids) const;
  void encode_normalized(std::string text, bool starts_input, std::vector<int32_t>& ids) const;
  bool is_shown(int32_t id, bool skip_special) const;

  PipelineParts parts_;
};

}  // namespace tinyvllm
