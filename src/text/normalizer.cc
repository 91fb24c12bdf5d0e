#include "text/normalizer.h"

#include <utf8proc.h>
#include <utility>

#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/normal_form.h"
#include "text/replace.h"
#include "text/unicode.h"

namespace tinyvllm {
namespace {

// A normalizer that is one function of the text.
template <class Function>
class FunctionNormalizer : public Normalizer {
 public:
  explicit FunctionNormalizer(Function function) : function_(std::move(function)) {}
  void apply(std::string& text) const override { function_(text); }

 private:
  Function function_;
};

template <class Function>
std::unique_ptr<Normalizer> make(Function function) {
  return std::make_unique<FunctionNormalizer<Function>>(std::move(function));
}

// The text with each character replaced by what `map` appends for it.
template <class Map>
void map_characters(std::string& text, const Map& map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) map(utf8_next(text, at), out);
  text = std::move(out);
}

struct CasePair {
  char32_t first, last, lower;  // of a run of capitals, and the small letter of the first
};
// Capitals of Unicode 16 and 17, which utf8proc may not know.
constexpr CasePair kRecentCapitals[] = {
    {0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x0264}, {0xA7CC, 0xA7CC, 0xA7CD},
    {0xA7CE, 0xA7CE, 0xA7CF},    {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
    {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x019B}, {0x10D50, 0x10D65, 0x10D70},
    {0x16EA0, 0x16EB8, 0x16EBB},
};

void append_lowercase(char32_t c, std::string& out) {
  if (c == 0x130) {  // İ: the only letter whose small form is two characters
    out += "i\u0307";
    return;
  }
  for (const CasePair& pair : kRecentCapitals) {
    if (c >= pair.first && c <= pair.last) return utf8_append(out, pair.lower + (c - pair.first));
  }
  utf8_append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void strip(std::string& text, bool left, bool right) {
  size_t begin = 0;
  for (size_t at = 0; left && at < text.size() && is_space(utf8_next(text, at));) begin = at;
  size_t end = text.size();
  while (right && end > begin && is_space(utf8_previous(text, end))) {
    end -= 1;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end -= 1;
  }
  text = text.substr(begin, end - begin);
}

void append_nmt(char32_t c, std::string& out) {
  const bool dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                       c == 0x7F || c == 0x8F || c == 0x9F;
  const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  if (!dropped) utf8_append(out, space ? U' ' : c);
}

// Bytes of the grapheme (a letter with what belongs to it) that begins at text[at].
size_t grapheme_length(std::string_view text, size_t at) {
  const size_t begin = at;
  utf8proc_int32_t state = 0;
  auto previous = static_cast<utf8proc_int32_t>(utf8_next(text, at));
  while (at < text.size()) {
    size_t after = at;
    const auto next = static_cast<utf8proc_int32_t>(utf8_next(text, after));
    if (utf8proc_grapheme_break_stateful(previous, next, &state)) break;
    previous = next;
    at = after;
  }
  return at - begin;
}

void apply_by_grapheme(std::string& text, const Charsmap& map) {
  constexpr size_t kLongestWhole = 5;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = grapheme_length(text, at);
    const std::string_view grapheme = std::string_view(text).substr(at, length);
    at += length;
    if (length <= kLongestWhole) {
      const Charsmap::Match match = map.shortest(grapheme);
      if (match.length > 0) {
        out += match.replacement;
        continue;
      }
    }
    for (size_t inner = 0; inner < grapheme.size();) {
      const size_t begin = inner;
      utf8_next(grapheme, inner);
      const std::string_view character = grapheme.substr(begin, inner - begin);
      const Charsmap::Match match = map.shortest(character);
      out += match.length > 0 ? match.replacement : character;
    }
  }
  text = is_utf8(out) ? std::move(out) : utf8_replace_invalid(out);
}

}  // namespace

void apply_all(const NormalizerChain& chain, std::string& text) {
  for (const auto& step : chain) step->apply(text);
}

std::unique_ptr<Normalizer> make_unicode_normalizer(NormalForm form) {
  return make([form](std::string& text) { normalize_unicode(text, form); });
}

std::unique_ptr<Normalizer> make_lowercase() {
  return make([](std::string& text) { map_characters(text, append_lowercase); });
}

std::unique_ptr<Normalizer> make_strip(bool left, bool right) {
  return make([left, right](std::string& text) { strip(text, left, right); });
}

std::unique_ptr<Normalizer> make_strip_accents() {
  return make([](std::string& text) {
    const CharacterTable& table = CharacterTable::get();
    map_characters(text, [&](char32_t c, std::string& out) {
      if (!table[c].is_accent()) utf8_append(out, c);
    });
  });
}

std::unique_ptr<Normalizer> make_nmt() {
  return make([](std::string& text) { map_characters(text, append_nmt); });
}

std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return make([prefix = std::move(prefix)](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  });
}

std::unique_ptr<Normalizer> make_replace(std::string from, std::string to) {
  return make([from = std::move(from), to = std::move(to)](std::string& text) {
    replace_all(text, from, to);
  });
}

std::unique_ptr<Normalizer> make_regex_replace(Regex regex, std::string to) {
  return make([regex = std::move(regex), to = std::move(to)](std::string& text) {
    if (!text.empty()) text = regex.replaced(text, to);
  });
}

std::unique_ptr<Normalizer> make_byte_alphabet() {
  return make([](std::string& text) { text = to_byte_alphabet(text); });
}

std::unique_ptr<Normalizer> make_charsmap_by_grapheme(Charsmap map) {
  return make([map = std::move(map)](std::string& text) { apply_by_grapheme(text, map); });
}

}  // namespace tinyvllm
