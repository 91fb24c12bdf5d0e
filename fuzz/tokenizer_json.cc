// Any bytes as a tokenizer.json, and what is left of them as the files beside it and as a text. The
// parts are separated as in the other targets.
#include "fuzz/tokenize.h"

using namespace tinyvllm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  TokenizerData files;
  files.tokenizer_json = fuzz::take_part(bytes);
  const std::string_view text = fuzz::take_part(bytes);
  files.tokenizer_config_json = fuzz::take_part(bytes);
  files.special_tokens_map_json = fuzz::take_part(bytes);
  files.end_ids = {-1, 2, 1'000'000'000};
  if (files.tokenizer_json.empty()) return 0;
  const auto tokenizer = Tokenizer::create(files);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.message().empty());
    return 0;
  }
  fuzz::use(*tokenizer.value(), text);
  fuzz::use(*tokenizer.value(), fuzz::kText);
  return 0;
}
