#include "text/detokenizer.h"

#include "base/utf8.h"

namespace tinyvllm {
namespace {

// The text is well-formed, so only well-formed stop strings can be met; and with those, what is
// held back never cuts through a character.
std::vector<std::string> well_formed(std::vector<std::string> strings) {
  for (std::string& string : strings) string = utf8_replace_invalid(string);
  return strings;
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const DetokenizerOptions& options)
    : stream_(tokenizer.stream(options.skip_special)),
      stops_(well_formed(options.stop), options.include_stop) {}

std::string Detokenizer::push(int32_t token) {
  if (stopped()) return "";
  std::string text;
  stream_->push(token, text);
  return stops_.push(text);
}

std::string Detokenizer::finish() {
  if (stopped()) return "";
  std::string text;
  stream_->finish(text);
  std::string out = stops_.push(text);
  return stopped() ? out : out + stops_.finish();
}

}  // namespace tinyvllm
