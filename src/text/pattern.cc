#include "text/pattern.h"

#include <utility>

#include "base/utf8.h"
#include "text/regex.h"
#include "text/regex_syntax.h"

namespace tinyvllm {
namespace {

class RegexPattern : public Pattern {
 public:
  explicit RegexPattern(Regex regex) : regex_(std::move(regex)) {}
  void find_all(std::string_view text, std::vector<Span>& matches) const override {
    regex_.find_all(text, matches);
  }

 private:
  Regex regex_;
};

class StringPattern : public Pattern {
 public:
  explicit StringPattern(std::string string) : string_(std::move(string)) {}
  void find_all(std::string_view text, std::vector<Span>& matches) const override {
    for (size_t at = text.find(string_); at != std::string_view::npos;) {
      matches.push_back({at, at + string_.size()});
      at = text.find(string_, at + string_.size());
    }
  }

 private:
  std::string string_;
};

class CharacterPattern : public Pattern {
 public:
  explicit CharacterPattern(std::function<bool(char32_t)> predicate)
      : predicate_(std::move(predicate)) {}
  void find_all(std::string_view text, std::vector<Span>& matches) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (predicate_(utf8_next(text, at))) matches.push_back({begin, at});
    }
  }

 private:
  std::function<bool(char32_t)> predicate_;
};

}  // namespace

Result<std::unique_ptr<Pattern>> make_regex_pattern(std::string_view expression) {
  TRY_ASSIGN(Regex regex, Regex::compile(expression));
  return std::unique_ptr<Pattern>(std::make_unique<RegexPattern>(std::move(regex)));
}

Result<std::unique_ptr<Pattern>> make_string_pattern(std::string_view text) {
  if (text.empty()) return make_regex_pattern("");  // matches between all characters
  return std::unique_ptr<Pattern>(std::make_unique<StringPattern>(std::string(text)));
}

std::unique_ptr<Pattern> make_character_pattern(std::function<bool(char32_t)> predicate) {
  return std::make_unique<CharacterPattern>(std::move(predicate));
}

}  // namespace tinyvllm
