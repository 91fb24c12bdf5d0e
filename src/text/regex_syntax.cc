#include "text/regex_syntax.h"

#include <array>
#include <optional>
#include <vector>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

// Deeper nesting than any published pattern has, and shallow enough for any stack.
constexpr int kMaxDepth = 50;

// What \w means: letters, marks, decimal and letter numbers, connectors, and the odd ones out.
constexpr std::string_view kWordItems =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

std::string hex_escape(char32_t c) {
  static const char* const kDigits = "0123456789ABCDEF";
  std::string digits;
  for (uint32_t rest = c; digits.empty() || rest != 0; rest >>= 4) {
    digits.insert(digits.begin(), kDigits[rest & 15]);
  }
  return "\\x{" + digits + "}";
}

bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

// One character, as it can stand anywhere in a PCRE2 pattern.
std::string literal(char32_t c) {
  if (c < 0x20 || c == 0x7F) return hex_escape(c);
  std::string text;
  if (c < 0x80 && !is_ascii_letter(c) && !is_digit(c)) text += '\\';
  utf8_append(text, c);
  return text;
}

struct PropertyName {
  std::string_view name;  // lower case, without spaces, '_' and '-'
  std::string_view meaning;
};
constexpr PropertyName kProperties[] = {
    {"any", "Any"},
    {"letter", "L"},
    {"mark", "M"},
    {"number", "N"},
    {"punctuation", "P"},
    {"symbol", "S"},
    {"separator", "Z"},
    {"other", "C"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"digit", "Nd"},
    {"space", "Xsp"},
    {"alphabetic", "Alphabetic"},
    {"alpha", "Alphabetic"},
};
constexpr std::string_view kCategories[] = {"c",  "cc", "cf", "cn", "co", "l",  "ll", "lm", "lo",
                                            "lt", "lu", "m",  "mc", "me", "mn", "n",  "nd", "nl",
                                            "no", "p",  "pc", "pd", "pe", "pf", "pi", "po", "ps",
                                            "s",  "sc", "sk", "sm", "so", "z",  "zl", "zp", "zs"};
constexpr std::string_view kScripts[] = {
    "arabic",   "armenian",  "bengali",   "bopomofo", "common",   "cyrillic", "devanagari",
    "ethiopic", "georgian",  "greek",     "gujarati", "gurmukhi", "han",      "hangul",
    "hebrew",   "hiragana",  "inherited", "kannada",  "katakana", "khmer",    "lao",
    "latin",    "malayalam", "mongolian", "myanmar",  "oriya",    "sinhala",  "tamil",
    "telugu",   "thai",      "tibetan"};

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view name) {
  for (const std::string_view item : list) {
    if (item == name) return true;
  }
  return false;
}

std::optional<std::string> property_meaning(std::string_view spelled) {
  std::string name;
  for (const char c : spelled) {
    if (c == ' ' || c == '_' || c == '-') continue;
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const PropertyName& property : kProperties) {
    if (property.name == name) return std::string(property.meaning);
  }
  if (contains(kCategories, name)) {
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    return name;
  }
  if (contains(kScripts, name)) return "sc:" + name;
  return std::nullopt;
}

// A set of characters, as a pattern that matches one of them. While it is no more than a list, it
// can still be written inside the brackets of another set.
struct CharacterSet {
  std::string items;                // what goes between brackets
  std::vector<std::string> others;  // patterns for what cannot

  bool is_list() const { return others.empty(); }

  std::string pattern(bool negated) const {
    if (is_list() && !items.empty()) return str_cat(negated ? "[^" : "[", items, "]");
    std::string any;
    if (!items.empty()) any = "[" + items + "]";
    for (const std::string& other : others) any += (any.empty() ? "" : "|") + other;
    if (any.empty()) any = "(?!)";
    return negated ? "(?:(?!" + any + ")(?s:.))" : "(?:" + any + ")";
  }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    if (!is_utf8(pattern_)) return failure("bytes that are not UTF-8");
    TRY(alternatives(0));
    if (!done()) return failure("')' without '('");
    return out_;
  }

 private:
  bool done() const { return at_ >= pattern_.size(); }
  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t next() { return utf8_next(pattern_, at_); }
  Error failure(std::string_view what) const {
    return error("pattern '", printable(pattern_, 400), "': ", what,
                 " is not supported, or wrong, at byte ", at_);
  }

  Status alternatives(int depth) {
    if (depth > kMaxDepth) return failure("nesting this deep");
    while (!done() && !starts_with(")")) {
      if (take("|")) {
        out_ += '|';
        continue;
      }
      const size_t begin = out_.size();
      TRY(atom(depth));
      TRY(quantifiers(begin));
    }
    return Status();
  }

  Status atom(int depth) {
    if (starts_with("(")) return group(depth);
    if (take("[")) {
      TRY_ASSIGN(const std::string set, set_pattern(depth));
      out_ += set;
      return Status();
    }
    if (take("\\")) return escape();
    if (take(".")) return emit(".");
    if (take("^")) return emit("^");
    if (take("$")) return emit("$");
    if (starts_with("*") || starts_with("+") || starts_with("?"))
      return failure("a repeat of nothing");
    return emit(literal(next()));
  }

  Status emit(std::string_view text) {
    out_ += text;
    return Status();
  }

  Status group(int depth) {
    at_ += 1;
    TRY_ASSIGN(const std::string opening, group_opening());
    out_ += opening;
    TRY(alternatives(depth + 1));
    if (!take(")")) return failure("'(' without ')'");
    out_ += ')';
    return Status();
  }

  // Groups never capture: nothing here can refer to one.
  Result<std::string> group_opening() {
    if (!take("?")) return std::string("(?:");
    for (const std::string_view kind : {":", "=", "!", "<=", "<!", ">"}) {
      if (take(kind)) return str_cat("(?", kind);
    }
    std::string flags;
    for (; starts_with("i") || starts_with("m") || starts_with("-"); at_ += 1) {
      flags += pattern_[at_] == 'm' ? 's' : pattern_[at_];
    }
    if (flags.empty() || !take(":")) return failure("this kind of group");
    return "(?" + flags + ":";
  }

  // Repeats of what stands in out_ from `begin` on. A second repeat applies to the repeated whole.
  Status quantifiers(size_t begin) {
    bool repeated = false;
    for (;;) {
      TRY_ASSIGN(const std::string repeat, quantifier());
      if (repeat.empty()) return Status();
      if (repeated) out_.insert(begin, "(?:"), out_ += ')';
      out_ += repeat;
      repeated = true;
    }
  }

  Result<std::string> quantifier() {
    for (const char c : {'?', '*', '+'}) {
      if (!take(std::string_view(&c, 1))) continue;
      std::string repeat(1, c);
      if (take("?")) return repeat + '?';
      if (take("+")) return repeat + '+';
      return repeat;
    }
    return interval();
  }

  // {n} {n,} {,m} {n,m}; anything else after '{' means the bracket itself.
  Result<std::string> interval() {
    const size_t begin = at_;
    if (!take("{")) return std::string();
    const std::string low = digits();
    const bool comma = take(",");
    const std::string high = comma ? digits() : "";
    if ((low.empty() && high.empty()) || !take("}")) {
      at_ = begin;
      return std::string();
    }
    if (low.size() > 4 || high.size() > 4) return failure("a repeat this long");
    if (!comma) return "{" + low + "}";  // with '?' after it: all of it, once or not at all
    return str_cat("{", low.empty() ? "0" : low, ",", high, take("?") ? "}?" : "}");
  }

  std::string digits() {
    std::string text;
    while (!done() && is_digit(static_cast<unsigned char>(pattern_[at_]))) text += pattern_[at_++];
    return text;
  }

  // After a backslash, outside of a set.
  Status escape() {
    if (done()) return failure("'\\' at the end");
    if (take("w")) return emit(word_set(false));
    if (take("W")) return emit(word_set(true));
    if (take("b")) return emit(word_boundary(false));
    if (take("B")) return emit(word_boundary(true));
    if (take("A")) return emit("\\A");
    if (take("z")) return emit("\\z");
    if (take("Z")) return emit("\\Z");
    if (take("R")) return emit(R"((?>\x0D\x0A|[\x0A-\x0D\x{85}\x{2028}\x{2029}]))");
    TRY_ASSIGN(const std::string shorthand, class_escape());
    if (!shorthand.empty()) {
      return emit(shorthand.starts_with("\\") ? shorthand : "[" + shorthand + "]");
    }
    TRY_ASSIGN(const char32_t c, character_escape());
    return emit(literal(c));
  }

  static std::string word_set(bool negated) {
    return str_cat(negated ? "[^" : "[", kWordItems, "]");
  }
  static std::string word_boundary(bool negated) {
    const std::string word = word_set(false);
    return str_cat("(?:(?<=", word, negated ? ")(?=" : ")(?!", word, ")|(?<!", word,
                   negated ? ")(?!" : ")(?=", word, "))");
  }

  // \s \S \d \D \h \p{…} \P{…}: as items of a set; empty when it is none of these.
  Result<std::string> class_escape() {
    for (const std::string_view name : {"s", "S", "d", "D"}) {
      if (take(name)) return str_cat("\\", name);
    }
    if (take("h")) return std::string("0-9a-fA-F");
    if (starts_with("p{") || starts_with("P{")) {
      bool negated = pattern_[at_] == 'P';
      at_ += 2;
      if (take("^")) negated = !negated;
      const size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) return failure("'\\p{' without '}'");
      const std::string_view name = pattern_.substr(at_, end - at_);
      const std::optional<std::string> meaning = property_meaning(name);
      if (!meaning.has_value()) return failure(str_cat("the property '", name, "'"));
      at_ = end + 1;
      return str_cat(negated ? "\\P{" : "\\p{", *meaning, "}");
    }
    return std::string();
  }

  Result<char32_t> character_escape() {
    struct Name {
      char32_t name, meaning;
    };
    static constexpr Name kNames[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'},
                                      {'v', '\v'}, {'a', '\a'}, {'e', 27}};
    const size_t begin = at_;
    const char32_t c = next();
    for (const Name& name : kNames) {
      if (c == name.name) return name.meaning;
    }
    if (c == 'x') return take("{") ? hex(8, "}") : hex(2, "");
    if (c == 'u') return hex(4, "");
    if (is_ascii_letter(c) || is_digit(c)) {
      at_ = begin;
      return failure("this escape");
    }
    return c;
  }

  // Up to `most` digits and then `closing`. Without a bracket, \xE4 is a byte and no character.
  Result<char32_t> hex(int most, std::string_view closing) {
    char32_t value = 0;
    int count = 0;
    for (; !done() && count < most; ++count, ++at_) {
      const char c = pattern_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value << 4 | static_cast<char32_t>(digit);
    }
    const bool is_byte = most == 2 && value >= 0x80;
    const bool is_character = value < 0x110000 && (value < 0xD800 || value > 0xDFFF);
    if (count == 0 || !take(closing) || is_byte || !is_character)
      return failure("this number of a character");
    return value;
  }

  // After '[': the set up to its ']', as a pattern for one character.
  Result<std::string> set_pattern(int depth) {
    const bool negated = take("^");
    TRY_ASSIGN(const CharacterSet set, set_contents(depth));
    return set.pattern(negated);
  }

  // a && b && c: a character of each.
  Result<CharacterSet> set_contents(int depth) {
    if (depth > kMaxDepth) return failure("nesting this deep");
    CharacterSet left;
    TRY(set_union(depth, left));
    while (take("&&")) {
      CharacterSet right;
      TRY(set_union(depth, right));
      CharacterSet both;
      both.others.push_back("(?:(?=" + right.pattern(false) + ")" + left.pattern(false) + ")");
      left = std::move(both);
    }
    if (!take("]")) return failure("'[' without ']'");
    return left;
  }

  Status set_union(int depth, CharacterSet& set) {
    bool first = true;
    for (; !done() && !starts_with("&&"); first = false) {
      if (starts_with("]") && !first) break;
      if (starts_with("[:")) return failure("a set named in brackets");
      if (take("[")) {
        TRY(nested_set(depth, set));
      } else {
        TRY(set_item(set));
      }
    }
    return Status();
  }

  Status nested_set(int depth, CharacterSet& set) {
    const bool negated = take("^");
    TRY_ASSIGN(const CharacterSet inner, set_contents(depth + 1));
    if (inner.is_list() && !negated) {
      set.items += inner.items;
    } else {
      set.others.push_back(inner.pattern(negated));
    }
    return Status();
  }

  // One character, a range of them, or a shorthand.
  Status set_item(CharacterSet& set) {
    if (take("\\")) {
      if (take("w")) return append(set.items, kWordItems);
      if (take("W")) {
        set.others.push_back(word_set(true));
        return Status();
      }
      TRY_ASSIGN(const std::string shorthand, class_escape());
      if (!shorthand.empty()) return append(set.items, shorthand);
      at_ -= 1;
    }
    TRY_ASSIGN(const char32_t low, set_character());
    set.items += literal(low);
    // A '-' before the end, or before a shorthand, is only a '-'.
    if (!starts_with("-") || starts_with("-]") || starts_with("-[") || starts_with("-&&"))
      return Status();
    const size_t dash = at_;
    at_ += 1;
    if (starts_with("\\") && at_ + 1 < pattern_.size() &&
        std::string_view("sSdDwWhHpP").find(pattern_[at_ + 1]) != std::string_view::npos) {
      at_ = dash + 1;
      return append(set.items, "\\-");
    }
    TRY_ASSIGN(const char32_t high, set_character());
    if (high < low) return failure("a range that ends before it begins");
    return append(set.items, "-" + literal(high));
  }

  Result<char32_t> set_character() {
    if (done()) return failure("'[' without ']'");
    if (!take("\\")) return next();
    if (take("b")) return char32_t{8};
    if (done()) return failure("'\\' at the end");
    return character_escape();
  }

  static Status append(std::string& items, std::string_view more) {
    items += more;
    return Status();
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern) {
  return Translator(pattern).run();
}

std::string quote_pattern(std::string_view text) {
  std::string pattern;
  for (size_t at = 0; at < text.size();) pattern += literal(utf8_next(text, at));
  return pattern;
}

}  // namespace tinyvllm
