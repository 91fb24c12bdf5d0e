// Any bytes as a GGUF file, for its vocabulary: whatever the reader lets through must make a
// tokenizer or words.
#include "fuzz/tokenize.h"
#include "io/gguf_reader.h"

using namespace tinyvllm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Result<GgufContents> contents = read_gguf(bytes);
  if (!contents.ok()) return 0;
  const auto vocabulary = take_gguf_vocabulary(contents.value().metadata);
  if (!vocabulary.ok() || !vocabulary.value()) return 0;
  TokenizerData files;
  files.gguf = *vocabulary.value();
  const auto tokenizer = Tokenizer::create(files);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.message().empty());
    return 0;
  }
  fuzz::use(*tokenizer.value(), bytes.substr(size > 64 ? size - 64 : 0));
  fuzz::use(*tokenizer.value(), fuzz::kText);
  return 0;
}
