#include "text/template/lexer.h"

#include <charconv>
#include <cstring>
#include <iterator>

#include "base/utf8.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

struct Operator {
  std::string_view text;
  Tok kind;
};
// Longer ones first.
constexpr Operator kOperators[] = {
    {"//", Tok::kFloorDiv},   {"**", Tok::kPow},         {"==", Tok::kEq},
    {"!=", Tok::kNe},         {">=", Tok::kGe},          {"<=", Tok::kLe},
    {"+", Tok::kAdd},         {"-", Tok::kSub},          {"/", Tok::kDiv},
    {"*", Tok::kMul},         {"%", Tok::kMod},          {"~", Tok::kTilde},
    {"[", Tok::kLeftBracket}, {"]", Tok::kRightBracket}, {"(", Tok::kLeftParen},
    {")", Tok::kRightParen},  {"{", Tok::kLeftBrace},    {"}", Tok::kRightBrace},
    {">", Tok::kGt},          {"<", Tok::kLt},           {"=", Tok::kAssign},
    {".", Tok::kDot},         {":", Tok::kColon},        {"|", Tok::kPipe},
    {",", Tok::kComma},       {";", Tok::kSemicolon},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_root();
    emit(Tok::kEnd, at_, at_);
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, and then the tag.
  void lex_root() {
    const size_t open = find_tag(at_);
    if (open == std::string_view::npos) {
      emit_data(at_, source_.size());
      at_ = source_.size();
      return;
    }
    if (size_t raw = 0; (raw = match_raw_begin(open)) != 0) return lex_raw(open, raw);
    const char type = source_[open + 1];
    const char sign = sign_at(open + 2);
    emit_stripped(at_, open, sign, /*lstrip=*/type != '{');
    const size_t inside = open + 2 + (sign != 0);
    if (type == '#') return lex_comment(open, inside);
    emit(type == '{' ? Tok::kVariableBegin : Tok::kBlockBegin, open, inside);
    at_ = inside;
    lex_tag(type == '{');
  }

  size_t find_tag(size_t from) const {
    for (size_t at = from; (at = source_.find('{', at)) != std::string_view::npos; ++at) {
      if (at + 1 < source_.size() && std::strchr("{%#", source_[at + 1]) != nullptr) return at;
    }
    return std::string_view::npos;
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : 0;
  }

  bool has(std::string_view text, size_t at) const {
    return source_.substr(std::min(at, source_.size()), text.size()) == text;
  }

  size_t skip_space(size_t at) const {
    while (const size_t bytes = unicode::space_bytes(source_, at)) at += bytes;
    return at;
  }

  // The end of a closing tag that begins at `at`, with the white space that it swallows; 0 if none.
  size_t match_close(size_t at, std::string_view close, bool plus, bool trim_newline) const {
    if (plus && has("+", at) && has(close, at + 1)) return at + 1 + close.size();
    if (has("-", at) && has(close, at + 1)) return skip_space(at + 1 + close.size());
    if (!has(close, at)) return 0;
    const size_t end = at + close.size();
    return end + (trim_newline && has("\n", end));
  }

  // {% raw %}: the end of the tag at `open`, 0 if it is another.
  size_t match_raw_begin(size_t open) const {
    if (source_[open + 1] != '%') return 0;
    const size_t word = skip_space(open + 2 + (sign_at(open + 2) != 0));
    if (!has("raw", word)) return 0;
    return match_close(skip_space(word + 3), "%}", /*plus=*/false, /*trim_newline=*/false);
  }

  void lex_raw(size_t open, size_t inside) {
    emit_stripped(at_, open, sign_at(open + 2), /*lstrip=*/true);
    line_starts_ = source_[inside - 1] == '\n';
    at_ = inside;
    if (inside == source_.size()) return;
    for (size_t at = inside; (at = source_.find("{%", at)) != std::string_view::npos; ++at) {
      const char sign = sign_at(at + 2);
      const size_t word = skip_space(at + 2 + (sign != 0));
      if (!has("endraw", word)) continue;
      const size_t end = match_close(skip_space(word + 6), "%}", true, true);
      if (end == 0) continue;
      emit_stripped(inside, at, sign, /*lstrip=*/true);
      return finish_tag(end);
    }
    fail_at(open, "missing end of raw directive");
  }

  void lex_comment(size_t open, size_t inside) {
    at_ = inside;
    if (inside == source_.size()) return;
    const size_t close = source_.find("#}", inside);
    if (close == std::string_view::npos) fail_at(open, "missing end of comment tag");
    // A sign belongs to the closing tag, unless it is what opened the comment.
    const bool sign = close > inside && sign_at(close - 1) != 0;
    finish_tag(match_close(close - sign, "#}", true, true));
  }

  void finish_tag(size_t end) {
    line_starts_ = source_[end - 1] == '\n';
    at_ = end;
  }

  // Data before a tag, less the white space that the tag's sign or lstrip_blocks takes away.
  void emit_stripped(size_t begin, size_t end, char sign, bool lstrip) {
    if (sign == '-') {
      end = begin + rstripped(source_.substr(begin, end - begin));
    } else if (sign != '+' && lstrip) {
      const std::string_view text = source_.substr(begin, end - begin);
      const size_t newline = text.rfind('\n');
      const bool at_line_start = newline != std::string_view::npos || line_starts_;
      const size_t line = begin + (newline == std::string_view::npos ? 0 : newline + 1);
      if (at_line_start && skip_space(line) >= end) end = line;
    }
    emit_data(begin, end);
    line_starts_ = false;
  }

  static size_t rstripped(std::string_view text) {
    size_t end = 0;
    for (size_t at = 0; at < text.size();) {
      const bool space = unicode::is_space(utf8_next(text, at));
      if (!space) end = at;
    }
    return end;
  }

  void lex_tag(bool variable) {
    while (at_ < source_.size()) {
      const size_t close = !brackets_.empty() ? 0
                           : variable         ? match_close(at_, "}}", false, false)
                                              : match_close(at_, "%}", true, true);
      if (close != 0) {
        emit(variable ? Tok::kVariableEnd : Tok::kBlockEnd, at_, close);
        return finish_tag(close);
      }
      if (const size_t bytes = unicode::space_bytes(source_, at_)) {
        at_ += bytes;
      } else if (!lex_float() && !lex_integer() && !lex_name() && !lex_string()) {
        lex_operator();
      }
    }
  }

  // (\d+_)*\d+ from `at`: its end, or `at`.
  size_t digits_end(size_t at) const {
    const size_t begin = at;
    while (at < source_.size() && (is_digit(source_[at]) ||
                                   (source_[at] == '_' && at > begin && source_[at - 1] != '_'))) {
      at += 1;
    }
    return at > begin && source_[at - 1] == '_' ? at - 1 : at;
  }

  bool lex_float() {
    if (at_ > 0 && source_[at_ - 1] == '.') return false;
    const size_t whole = digits_end(at_);
    if (whole == at_) return false;
    size_t end = whole;
    if (has(".", whole)) {
      const size_t fraction = digits_end(whole + 1);
      if (fraction > whole + 1) end = fraction;
    }
    if (has("e", end) || has("E", end)) {
      const size_t sign = end + 1 + (sign_at(end + 1) != 0);
      const size_t exponent = digits_end(sign);
      if (exponent > sign) end = exponent;
    }
    if (end == whole) return false;
    Token& token = emit(Tok::kFloat, at_, end);
    const std::string text = without_underscores(at_, end);
    const auto [rest, status] =
        std::from_chars(text.data(), text.data() + text.size(), token.number);
    if (status != std::errc()) fail_at(at_, "the number ", text, " is beyond a double");
    at_ = end;
    return true;
  }

  bool lex_integer() {
    if (!is_digit(source_[at_])) return false;
    int base = 10;
    size_t end = at_ + 1;
    if (source_[at_] == '0') {
      const char letter = at_ + 1 < source_.size() ? source_[at_ + 1] | 0x20 : 0;
      const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
      if (prefixed != 0 && based_digits_end(at_ + 2, prefixed) > at_ + 2) {
        base = prefixed;
        end = based_digits_end(at_ + 2, base);
      } else {
        end = based_digits_end(at_ + 1, 1);
      }
    } else {
      end = based_digits_end(at_ + 1, 10);
    }
    Token& token = emit(Tok::kInteger, at_, end);
    const std::string text = without_underscores(base == 10 ? at_ : at_ + 2, end);
    const auto [rest, status] =
        std::from_chars(text.data(), text.data() + text.size(), token.integer, base);
    if (status != std::errc()) fail_at(at_, "the integer ", text, " is beyond 64 bits");
    at_ = end;
    return true;
  }

  // (_?digit)* from `at`; in base 1 the only digit is 0.
  size_t based_digits_end(size_t at, int base) const {
    const auto is_based_digit = [&](size_t i) {
      if (i >= source_.size()) return false;
      const char c = source_[i];
      if (is_digit(c)) return c - '0' < base;
      return base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
    };
    while (true) {
      if (is_based_digit(at)) {
        at += 1;
      } else if (has("_", at) && is_based_digit(at + 1)) {
        at += 2;
      } else {
        return at;
      }
    }
  }

  std::string without_underscores(size_t begin, size_t end) const {
    std::string text(source_.substr(begin, end - begin));
    std::erase(text, '_');
    return text;
  }

  bool lex_name() {
    size_t end = at_;
    bool valid = true;
    while (end < source_.size()) {
      size_t next = end;
      const char32_t c = utf8_next(source_, next);
      if (!unicode::is_word(c) && !unicode::continues_identifier(c)) break;
      valid &= end == at_ ? unicode::starts_identifier(c) : unicode::continues_identifier(c);
      end = next;
    }
    if (end == at_) return false;
    if (!valid) fail_at(at_, "invalid character in identifier");
    emit(Tok::kName, at_, end).text = source_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool lex_string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_at(at_, "the string has no closing ", quote);
    Token& token = emit(Tok::kString, at_, end + 1);
    try {
      token.text = unescape(source_.substr(at_ + 1, end - at_ - 1));
    } catch (TemplateError& error) {
      fail_at(at_, error.message);
    }
    at_ = end + 1;
    return true;
  }

  void lex_operator() {
    for (const Operator& op : kOperators) {
      if (!has(op.text, at_)) continue;
      balance(op.text[0]);
      emit(op.kind, at_, at_ + op.text.size());
      at_ += op.text.size();
      return;
    }
    size_t end = at_;
    utf8_next(source_, end);
    fail_at(at_, "unexpected character '", source_.substr(at_, end - at_), "'");
  }

  void balance(char bracket) {
    constexpr std::string_view kOpen = "([{";
    constexpr std::string_view kClose = ")]}";
    if (const size_t open = kOpen.find(bracket); open != std::string_view::npos) {
      brackets_.push_back(kClose[open]);
    } else if (kClose.find(bracket) != std::string_view::npos) {
      if (brackets_.empty()) fail_at(at_, "unexpected '", bracket, "'");
      if (brackets_.back() != bracket) {
        fail_at(at_, "unexpected '", bracket, "', expected '", brackets_.back(), "'");
      }
      brackets_.pop_back();
    }
  }

  void emit_data(size_t begin, size_t end) {
    if (begin < end) emit(Tok::kData, begin, end).text = source_.substr(begin, end - begin);
  }

  Token& emit(Tok kind, size_t begin, size_t end) {
    Token& token = tokens_.emplace_back();
    token.kind = kind;
    token.begin = static_cast<uint32_t>(begin);
    token.end = static_cast<uint32_t>(end);
    token.at = position(begin);
    return token;
  }

  // Offsets are asked for in ascending order, so counting goes on where it stopped.
  Position position(size_t offset) {
    for (; counted_ < offset; ++counted_) {
      const char byte = source_[counted_];
      if (byte == '\n') {
        position_.line += 1;
        position_.column = 1;
      } else if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) {
        position_.column += 1;
      }
    }
    return position_;
  }

  template <class... Parts>
  [[noreturn]] void fail_at(size_t offset, const Parts&... parts) {
    counted_ = 0;
    position_ = {1, 1};
    throw TemplateError{str_cat(parts...), position(offset)};
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starts_ = true;  // nothing but a line end lies before at_
  std::string brackets_;     // closing ones still expected inside the current tag
  std::vector<Token> tokens_;
  size_t counted_ = 0;
  Position position_{1, 1};
};

}  // namespace

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string_view describe(Tok kind) {
  for (const Operator& op : kOperators) {
    if (op.kind == kind) return op.text;
  }
  switch (kind) {
    case Tok::kData:
      return "template text";
    case Tok::kVariableBegin:
      return "{{";
    case Tok::kVariableEnd:
      return "}}";
    case Tok::kBlockBegin:
      return "{%";
    case Tok::kBlockEnd:
      return "%}";
    case Tok::kName:
      return "name";
    case Tok::kString:
      return "string";
    case Tok::kInteger:
      return "integer";
    case Tok::kFloat:
      return "float";
    default:
      return "end of template";
  }
}

std::string describe(const Token& token) {
  return token.kind == Tok::kName ? token.text : std::string(describe(token.kind));
}

}  // namespace tinyvllm::jinja
