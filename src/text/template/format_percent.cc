// "%-5s|%03d" % (name, number): printf-style formatting as Python has it.
#include <cmath>
#include <cstdio>

#include "text/template/format.h"
#include "text/template/html.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

struct Conversion {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  int64_t width = 0;
  int64_t precision = -1;  // -1: none
  char type = 's';
};

constexpr int64_t kMostDigits = 1000;  // of precision: no number has more to show

class Percent {
 public:
  Percent(Sandbox& sandbox, const Str& format, const Value& value)
      : sandbox_(sandbox), format_(format), value_(value), out_(sandbox.heap()) {
    // A tuple holds the arguments; anything else is the only one, or where names are looked up.
    if (value.is(Kind::kTuple)) {
      count_ = value.list->size;
    } else {
      count_ = 1;
      mapping_ = value.is(Kind::kDict) || value.is(Kind::kList) || value.is(Kind::kRange) ||
                 value.is(Kind::kUndefined);
    }
  }

  Value run() {
    uint32_t kept = 0;
    for (uint32_t at = 0; at < format_.size; ++at) {
      if (format_.data[at] != '%') continue;
      out_.append(format_, kept, at);
      at_ = at + 1;
      convert(at);
      kept = at_;
      at = at_ - 1;
    }
    out_.append(format_, kept, format_.size);
    if (used_ < count_ && !mapping_) fail("not all arguments were converted by the format");
    return Value(out_.finish(format_.markup));
  }

 private:
  char peek() const {
    if (at_ >= format_.size) fail("the format ends in the middle of a conversion");
    return format_.data[at_];
  }

  const Value& next_argument() {
    if (used_ >= count_) fail("not enough arguments for the format");
    used_ += 1;
    return value_.is(Kind::kTuple) ? value_.list->items[used_ - 1] : value_;
  }

  // One conversion, from behind its '%' on.
  void convert(uint32_t begin) {
    sandbox_.charge(1);
    if (peek() == '%') {
      at_ += 1;
      return out_.append("%", format_.origin_at(begin));
    }
    Conversion c;
    Value named;
    if (peek() == '(') named = read_name();
    read_flags(c);
    c.width = read_number(0);
    if (c.width < 0) {
      c.left = true;
      c.width = -c.width;
    }
    if (peek() == '.') {
      at_ += 1;
      c.precision = std::max<int64_t>(0, read_number(0));
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') at_ += 1;
    c.type = peek();
    at_ += 1;
    emit(c, named.missing() ? next_argument() : named);
  }

  Value read_name() {
    if (!mapping_) fail("the format needs a mapping");
    const uint32_t begin = at_ + 1;
    int open = 1;
    while (open > 0) {
      at_ += 1;
      open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    }
    const Value key = Value(substr(sandbox_.heap(), format_, begin, at_));
    at_ += 1;
    used_ = count_;
    if (!value_.is(Kind::kDict)) fail_type("the format needs a mapping", value_);
    const Value* found = value_.dict->find(key);
    if (found == nullptr) fail("the format needs '", printable(key.str->view()), "'");
    return *found;
  }

  void read_flags(Conversion& c) {
    while (true) {
      switch (peek()) {
        case '-':
          c.left = true;
          break;
        case '+':
          c.plus = true;
          break;
        case ' ':
          c.space = true;
          break;
        case '#':
          c.alternate = true;
          break;
        case '0':
          c.zero = true;
          break;
        default:
          return;
      }
      at_ += 1;
    }
  }

  int64_t read_number(int64_t otherwise) {
    if (peek() == '*') {
      at_ += 1;
      return to_int(next_argument(), "a width or precision");
    }
    int64_t number = otherwise;
    for (bool first = true; peek() >= '0' && peek() <= '9'; first = false, ++at_) {
      number = (first ? 0 : number) * 10 + (peek() - '0');
      if (number > int64_t{1} << 31) fail("a width or precision in the format is too big");
    }
    return number;
  }

  void emit(const Conversion& c, const Value& value) {
    switch (c.type) {
      case 's':
      case 'r':
      case 'a':
        return emit_text(c, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return emit_integer(c, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return emit_float(c, value);
      case 'c':
        return emit_character(c, value);
      default:
        fail("unsupported conversion '", c.type, "' in the format");
    }
  }

  void emit_text(const Conversion& c, const Value& value) {
    const Str* text = nullptr;
    if (c.type == 's') {
      text = to_text(sandbox_, value);
    } else {
      TextBuilder quoted(sandbox_.heap());
      print_repr(sandbox_, quoted, value);
      text = quoted.finish();
      if (c.type == 'a') text = to_ascii(sandbox_, *text);
    }
    if (format_.markup) text = escape_html(sandbox_, *text);
    if (c.precision >= 0 && c.precision < text->chars) {
      text = substr(sandbox_.heap(), *text, 0, text->offset_of(static_cast<uint32_t>(c.precision)));
    }
    out_.append(*pad(sandbox_, *text, c.width, nullptr, c.left ? Align::kLeft : Align::kRight));
  }

  void emit_integer(const Conversion& c, const Value& value) {
    const bool decimal = c.type == 'd' || c.type == 'i' || c.type == 'u';
    if (!value.is_number()) fail_type("the format needs a number", value);
    if (value.is(Kind::kFloat) && !decimal) fail("the format needs an integer, found 'float'");
    const int64_t number = value.is(Kind::kFloat) ? checked_int(value.number) : value.as_int();
    const uint64_t magnitude =
        number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    char digits[32];
    std::snprintf(digits, sizeof(digits),
                  c.type == 'x'   ? "%lx"
                  : c.type == 'X' ? "%lX"
                  : c.type == 'o' ? "%lo"
                                  : "%lu",
                  magnitude);
    std::string text = digits;
    if (c.precision > kMostDigits) fail("a precision in the format is too big");
    if (static_cast<int64_t>(text.size()) < c.precision) {
      text.insert(0, static_cast<size_t>(c.precision) - text.size(), '0');
    }
    const std::string prefix = c.alternate && !decimal ? str_cat('0', c.type) : "";
    emit_number(c, number < 0, prefix, text, value.origin);
  }

  void emit_float(const Conversion& c, const Value& value) {
    if (value.is(Kind::kUndefined)) fail_undefined(value);
    if (!value.is_number()) fail_type("the format needs a number", value);
    const double number = value.as_float();
    if (c.precision > kMostDigits) fail("a precision in the format is too big");
    const int precision = c.precision < 0 ? 6 : static_cast<int>(c.precision);
    const std::string digits = float_digits(std::fabs(number), c.type, precision, c.alternate);
    emit_number(c, std::signbit(number) && !std::isnan(number), "", digits, value.origin);
  }

  void emit_number(const Conversion& c, bool negative, const std::string& prefix,
                   const std::string& digits, Origin origin) {
    const std::string sign = negative ? "-" : c.plus ? "+" : c.space ? " " : "";
    const auto size = static_cast<int64_t>(sign.size() + prefix.size() + digits.size());
    const auto padding = static_cast<size_t>(std::max<int64_t>(0, c.width - size));
    sandbox_.heap().require(padding);
    sandbox_.charge_bytes(padding);
    if (!c.left && !c.zero) out_.pad(padding, " ", Origin::kTemplate);
    out_.append(sign + prefix, origin);
    if (!c.left && c.zero) out_.pad(padding, "0", Origin::kTemplate);
    out_.append(digits, origin);
    if (c.left) out_.pad(padding, " ", Origin::kTemplate);
  }

  void emit_character(const Conversion& c, const Value& value) {
    const Str* text = nullptr;
    if (value.is(Kind::kStr)) {
      text = value.str;
      if (text->chars != 1) fail("%c needs one character");
    } else {
      const int64_t code = to_int(value, "%c");
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        fail("%c needs a character's number");
      }
      TextBuilder character(sandbox_.heap());
      character.append(static_cast<char32_t>(code), value.origin);
      text = character.finish();
    }
    out_.append(*pad(sandbox_, *text, c.width, nullptr, c.left ? Align::kLeft : Align::kRight));
  }

  Sandbox& sandbox_;
  const Str& format_;
  const Value& value_;
  TextBuilder out_;
  uint32_t at_ = 0;
  size_t count_ = 0;  // of arguments
  size_t used_ = 0;
  bool mapping_ = false;
};

}  // namespace

Value format_percent(Sandbox& sandbox, const Str& format, const Value& value) {
  return Percent(sandbox, format, value).run();
}

}  // namespace tinyvllm::jinja
