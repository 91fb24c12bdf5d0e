#include "text/tokenizer.h"

#include "text/gguf_vocabulary.h"

namespace tinyvllm {

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const TokenizerData& data) {
  if (data.gguf.has_value()) return make_gguf_tokenizer(*data.gguf, data.end_ids);
  return error(
      "the model's files hold no tokenizer that can be read (looked for: tokenizer.ggml.* in a "
      "GGUF file)");
}

}  // namespace tinyvllm
