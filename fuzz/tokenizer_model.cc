// Any bytes as a tokenizer.model: the protocol buffer, its character rules, and the tokenizer made
// of them. What follows are a text to encode and the file beside the model.
#include "fuzz/tokenize.h"

using namespace tinyvllm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  TokenizerData files;
  files.sentencepiece_model = fuzz::take_part(bytes);
  const std::string_view text = fuzz::take_part(bytes);
  files.tokenizer_config_json = fuzz::take_part(bytes);
  if (files.sentencepiece_model.empty()) return 0;
  const auto tokenizer = Tokenizer::create(files);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.message().empty());
    return 0;
  }
  fuzz::use(*tokenizer.value(), text);
  fuzz::use(*tokenizer.value(), fuzz::kText);
  return 0;
}
