// Any bytes as a tokenizer.model: the protocol buffer, its character rules, and the tokenizer made
// of them. What follows the separator is a text to encode.
#include "fuzz/tokenize.h"

using namespace tinyvllm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kSeparator = "\x1E\x1E\x1E\x1E";
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t cut = bytes.rfind(kSeparator);
  TokenizerData files;
  files.sentencepiece_model = bytes.substr(0, cut);
  if (files.sentencepiece_model.empty()) return 0;
  const auto tokenizer = Tokenizer::create(files);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.message().empty());
    return 0;
  }
  if (cut != std::string_view::npos) {
    fuzz::use(*tokenizer.value(), bytes.substr(cut + kSeparator.size()));
  }
  fuzz::use(*tokenizer.value(), "  The <s>quick</s>  brown\n漢字 ▁fox ① é\u0301 ");
  return 0;
}
