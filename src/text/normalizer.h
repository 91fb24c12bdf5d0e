// Changes that are made to text before it is split: Unicode normal forms, spaces to "▁", and the
// like. A tokenizer has a chain of these. Input and output are well-formed UTF-8.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/charsmap.h"
#include "text/regex.h"

namespace tinyvllm {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text) const = 0;
};
using NormalizerChain = std::vector<std::unique_ptr<Normalizer>>;

void apply_all(const NormalizerChain& chain, std::string& text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form);
std::unique_ptr<Normalizer> make_lowercase();
std::unique_ptr<Normalizer> make_strip(bool left, bool right);  // of white space
std::unique_ptr<Normalizer> make_strip_accents();
std::unique_ptr<Normalizer> make_nmt();  // drops control characters, makes odd spaces plain ones
std::unique_ptr<Normalizer> make_prepend(std::string prefix);  // to text that is not empty
std::unique_ptr<Normalizer> make_replace(std::string from, std::string to);
std::unique_ptr<Normalizer> make_regex_replace(Regex regex, std::string to);
std::unique_ptr<Normalizer> make_byte_alphabet();  // " é" → "ĠÃ©"

// The rules of a SentencePiece model as the `tokenizers` package applies them: to whole graphemes
// of up to five bytes (of which the shortest rule eats all), else to single characters.
std::unique_ptr<Normalizer> make_charsmap_by_grapheme(Charsmap map);

}  // namespace tinyvllm
