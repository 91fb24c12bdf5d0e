#include "text/tokenizer.h"

#include "text/gguf_vocabulary.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_json.h"

namespace tinyvllm {

// A folder may hold its tokenizer in two forms; tokenizer.json says more than tokenizer.model.
Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const TokenizerData& data) {
  if (data.gguf.has_value()) return make_gguf_tokenizer(*data.gguf, data.end_ids);
  if (!data.tokenizer_json.empty()) return make_json_tokenizer(data);
  if (!data.sentencepiece_model.empty()) return make_sentencepiece_tokenizer(data);
  return error(
      "the model's files hold no tokenizer: looked for tokenizer.ggml.* in a GGUF file, "
      "tokenizer.json and tokenizer.model");
}

}  // namespace tinyvllm
