// Any bytes as a tokenizer.json, and what is left of them as the files beside it and as a text. The
// parts are separated as in the other targets.
#include "fuzz/tokenize.h"

using namespace tinyvllm;

namespace {

constexpr std::string_view kSeparator = "\x1E\x1E\x1E\x1E";

std::string_view take_part(std::string_view& bytes) {
  const size_t cut = bytes.find(kSeparator);
  const std::string_view part = bytes.substr(0, cut);
  bytes.remove_prefix(cut == std::string_view::npos ? bytes.size() : cut + kSeparator.size());
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  TokenizerData files;
  files.tokenizer_json = take_part(bytes);
  const std::string_view text = take_part(bytes);
  files.tokenizer_config_json = take_part(bytes);
  files.special_tokens_map_json = take_part(bytes);
  files.end_ids = {-1, 2, 1'000'000'000};
  if (files.tokenizer_json.empty()) return 0;
  const auto tokenizer = Tokenizer::create(files);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.message().empty());
    return 0;
  }
  fuzz::use(*tokenizer.value(), text);
  fuzz::use(*tokenizer.value(), "The <s>quick</s>  brown\n漢字 ▁fox 123 é\u0301 <0x41>");
  return 0;
}
