#include "text/sentencepiece_normalizer.h"

#include <string>
#include <utility>

#include "base/utf8.h"
#include "text/charsmap.h"
#include "text/token_matcher.h"

namespace tinyvllm {
namespace {

constexpr std::string_view kSpaceMark = "▁";

class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieceVocabulary& vocabulary, Charsmap map)
      : map_(std::move(map)),
        add_prefix_(vocabulary.add_dummy_prefix),
        remove_extra_(vocabulary.remove_extra_whitespaces),
        space_is_suffix_(vocabulary.space_is_suffix),
        space_(vocabulary.escape_whitespaces ? kSpaceMark : " ") {
    for (const SentencePieceVocabulary::Piece& piece : vocabulary.pieces) {
      if (piece.type == SentencePieceVocabulary::Type::kUserDefined && is_utf8(piece.text)) {
        user_defined_.insert(piece.text, 0);
      }
    }
  }

  void apply(std::string& text) const override {
    std::string_view input = text;
    if (remove_extra_) {
      for (Step step = next(input); !input.empty() && step.text == " "; step = next(input)) {
        input.remove_prefix(step.length);
      }
    }
    std::string out;
    if (!input.empty()) normalize(input, out);
    text = is_utf8(out) ? std::move(out) : utf8_replace_invalid(out);
  }

 private:
  // The longest beginning of the input that one rule covers, and what it becomes.
  struct Step {
    size_t length = 0;
    std::string_view text;
  };

  Step next(std::string_view input) const {
    if (input.empty()) return {};
    if (user_defined_.begins(input[0])) {
      const size_t length = user_defined_.longest_at(input, 0).length;
      if (length > 0) return {length, input.substr(0, length)};
    }
    const Charsmap::Match match = map_.longest(input);
    if (match.length > 0) return {match.length, match.replacement};
    const auto length = static_cast<size_t>(utf8_sequence_length(input));
    return length > 0 ? Step{length, input.substr(0, length)} : Step{1, "\uFFFD"};
  }

  void normalize(std::string_view input, std::string& out) const {
    out.reserve(input.size() + input.size() / 2);
    if (add_prefix_ && !space_is_suffix_) out += space_;
    bool after_space = remove_extra_;
    while (!input.empty()) {
      const Step step = next(input);
      input.remove_prefix(step.length);
      std::string_view piece = step.text;
      while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
      if (piece.empty()) continue;
      for (const char byte : piece) {
        if (byte == ' ') {
          out += space_;
        } else {
          out += byte;
        }
      }
      after_space = remove_extra_ && piece.ends_with(' ');
    }
    while (remove_extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
    if (add_prefix_ && space_is_suffix_) out += space_;
  }

  Charsmap map_;
  TokenMatcher user_defined_;
  bool add_prefix_, remove_extra_, space_is_suffix_;
  std::string_view space_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_sentencepiece_normalizer(
    const SentencePieceVocabulary& vocabulary) {
  TRY_ASSIGN(Charsmap map, Charsmap::parse(vocabulary.charsmap));
  return std::unique_ptr<Normalizer>(
      std::make_unique<SentencePieceNormalizer>(vocabulary, std::move(map)));
}

}  // namespace tinyvllm
