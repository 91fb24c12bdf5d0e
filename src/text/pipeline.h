// The tokenizer that every source of vocabulary is built into: cut out added tokens, split the rest
// into pieces, let the model encode each piece; and back again through the tokens' bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/pretokenizer.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct PipelineParts {
  std::string kind;
  AddedTokens added;
  std::vector<std::unique_ptr<PreTokenizer>> pretokenizers;
  std::unique_ptr<TokenModel> model;
  std::vector<std::string> token_bytes;  // [vocab_size], what each token decodes to
  std::vector<int32_t> prefix_ids;       // put before and after every text when add_special is on
  std::vector<int32_t> suffix_ids;
  std::vector<int32_t> end_ids;
};

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}

  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const override;
  std::string piece(int32_t id, bool skip_special) const override;
  std::unique_ptr<TokenStream> stream(bool skip_special) const override;

  int32_t vocab_size() const override { return static_cast<int32_t>(parts_.token_bytes.size()); }
  bool is_end(int32_t id) const override;
  const std::vector<int32_t>& end_ids() const override { return parts_.end_ids; }
  std::string kind() const override { return parts_.kind; }

 private:
  PipelineParts parts_;
};

}  // namespace tinyvllm
