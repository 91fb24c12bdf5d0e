// format(value, spec): [[fill]align][sign][#][0][width][grouping][.precision][type].
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"
#include "text/template/format.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

struct Spec {
  std::string_view fill = " ";
  char align = 0;  // < > = ^, or 0 if not given
  char sign = 0;   // + - or space, or 0 if not given
  bool no_minus_zero = false;
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = 0;  // , or _
  int64_t precision = -1;
  char type = 0;
};

constexpr int64_t kMostDigits = 1000;

int64_t read_number(std::string_view& rest) {
  int64_t number = 0;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    number = number * 10 + (rest[0] - '0');
    if (number > int64_t{1} << 31) fail("too many digits in a format specification");
    rest.remove_prefix(1);
  }
  return number;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Spec parse(std::string_view rest) {
  Spec spec;
  const auto take = [&rest](char c) {
    if (rest.empty() || rest[0] != c) return false;
    rest.remove_prefix(1);
    return true;
  };
  const size_t first =
      rest.empty() ? 0 : static_cast<size_t>(std::max(1, utf8_sequence_length(rest)));
  if (first < rest.size() && is_align(rest[first])) {
    spec.fill = rest.substr(0, first);
    spec.align = rest[first];
    rest.remove_prefix(first + 1);
  } else if (!rest.empty() && is_align(rest[0])) {
    spec.align = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-' || rest[0] == ' ')) {
    spec.sign = rest[0];
    rest.remove_prefix(1);
  }
  spec.no_minus_zero = take('z');
  spec.alternate = take('#');
  spec.zero = take('0');
  if (spec.zero && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  } else if (spec.zero && spec.fill == " ") {
    spec.fill = "0";
  }
  spec.width = read_number(rest);
  if (take(',')) spec.grouping = ',';
  if (take('_')) {
    if (spec.grouping != 0) fail("both ',' and '_' in a format specification");
    spec.grouping = '_';
  }
  if (take('.')) {
    if (rest.empty() || rest[0] < '0' || rest[0] > '9') {
      fail("a format specification lacks its precision");
    }
    spec.precision = read_number(rest);
  }
  if (rest.size() > 1) fail("invalid format specification");
  if (!rest.empty()) spec.type = rest[0];
  return spec;
}

// Separators every three (or four) digits; zeros that fill up to `width` are grouped too.
std::string group(std::string digits, char separator, size_t every, size_t width) {
  std::string grouped;
  size_t placed = 0;
  while (!digits.empty() || grouped.size() < width) {
    if (placed != 0 && placed % every == 0) {
      grouped.insert(grouped.begin(), separator);
    }
    grouped.insert(grouped.begin(), digits.empty() ? '0' : digits.back());
    if (!digits.empty()) digits.pop_back();
    placed += 1;
  }
  return grouped;
}

class Formatter {
 public:
  Formatter(Sandbox& sandbox, TextBuilder& out, const Spec& spec)
      : sandbox_(sandbox), out_(out), spec_(spec) {}

  void text(const Str& text) {
    if (spec_.type != 0 && spec_.type != 's') fail_type();
    if (spec_.sign != 0) fail("a sign is not allowed in the format of a string");
    if (spec_.no_minus_zero) fail("'z' is not allowed in the format of a string");
    if (spec_.alternate) fail("'#' is not allowed in the format of a string");
    if (spec_.grouping != 0) fail("grouping is not allowed in the format of a string");
    char align = spec_.align;
    if (align == '=' && !spec_.zero) fail("'=' is not allowed in the format of a string");
    if (align == '=' || align == 0) align = '<';
    const Str* shown = &text;
    if (spec_.precision >= 0 && spec_.precision < text.chars) {
      shown =
          substr(sandbox_.heap(), text, 0, text.offset_of(static_cast<uint32_t>(spec_.precision)));
    }
    const Str* fill = make_str(sandbox_.heap(), spec_.fill, Origin::kTemplate);
    const Align to = align == '<' ? Align::kLeft : align == '>' ? Align::kRight : Align::kCenter;
    // Python centres format() and str.center() differently when the padding is odd.
    if (to == Align::kCenter) return centred(*shown, *fill);
    out_.append(*pad(sandbox_, *shown, spec_.width, fill, to));
  }

  void integer(const Value& value) {
    const char type = spec_.type == 0 ? 'd' : spec_.type;
    if (type == 'c') return character(value);
    if (std::string_view("eEfFgG%").find(type) != std::string_view::npos) return floating(value);
    if (spec_.no_minus_zero) fail("'z' is not allowed in the format of an integer");
    if (spec_.precision >= 0) fail("a precision is not allowed in the format of an integer");
    if (spec_.grouping == ',' && type != 'd' && type != 'n') fail("',' needs a decimal format");
    const int64_t number = value.as_int();
    const uint64_t magnitude =
        number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    const int base = type == 'b' ? 2 : type == 'o' ? 8 : (type | 0x20) == 'x' ? 16 : 10;
    if (base == 10 && type != 'd' && type != 'n') fail_type();
    char buffer[72];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base).ptr;
    std::string digits(buffer, end);
    if (type == 'X') {
      for (char& c : digits) c = static_cast<char>(std::toupper(c));
    }
    const std::string prefix = spec_.alternate && base != 10 ? str_cat('0', type) : "";
    number_text(number < 0, prefix, digits, "", base == 10 ? 3 : 4, value.origin);
  }

  void floating(const Value& value) {
    double number = value.as_float();
    char type = spec_.type;
    if (type != 0 && std::string_view("eEfFgGn%").find(type) == std::string_view::npos) fail_type();
    if (spec_.precision > kMostDigits) fail("a precision in the format is too big");
    std::string digits;
    if (type == 0 && spec_.precision < 0) {
      digits = float_repr(std::fabs(number));
      if (spec_.alternate && digits.find('.') == std::string::npos && std::isfinite(number)) {
        digits.insert(std::min(digits.find('e'), digits.size()), 1, '.');
      }
    } else {
      const int precision = spec_.precision < 0 ? 6 : static_cast<int>(spec_.precision);
      if (type == '%') number *= 100;
      const char style = type == 0 ? 'r' : type == 'n' ? 'g' : type == '%' ? 'f' : type;
      digits = float_digits(std::fabs(number), style, precision, spec_.alternate);
      if (type == '%') digits += '%';
    }
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    const bool zero =
        digits.find_first_of("123456789") == std::string::npos && std::isfinite(number);
    const bool negative = std::signbit(number) && !std::isnan(number);
    number_text(negative && !(zero && spec_.no_minus_zero), "", digits.substr(0, whole),
                digits.substr(whole), 3, value.origin);
  }

 private:
  [[noreturn]] void fail_type() const {
    fail("unknown format code '", printable(std::string_view(&spec_.type, 1)), "'");
  }

  void centred(const Str& shown, const Str& fill) {
    const int64_t missing = std::max<int64_t>(0, spec_.width - shown.chars);
    out_.append(*pad(sandbox_,
                     *pad(sandbox_, shown, shown.chars + missing / 2, &fill, Align::kRight),
                     spec_.width, &fill, Align::kLeft));
  }

  void character(const Value& value) {
    const int64_t code = value.as_int();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("the format 'c' needs a character's number");
    }
    if (spec_.sign != 0 || spec_.alternate || spec_.precision >= 0 || spec_.grouping != 0) {
      fail("the format 'c' takes no sign, precision or grouping");
    }
    TextBuilder text(sandbox_.heap());
    text.append(static_cast<char32_t>(code), value.origin);
    const Str* fill = make_str(sandbox_.heap(), spec_.fill, Origin::kTemplate);
    const Str* shown = text.finish();
    if (spec_.align == '^') return centred(*shown, *fill);
    const bool right = spec_.align == '>' || spec_.align == '=';
    out_.append(*pad(sandbox_, *shown, spec_.width, fill, right ? Align::kRight : Align::kLeft));
  }

  void number_text(bool negative, const std::string& prefix, const std::string& whole,
                   const std::string& rest, size_t every, Origin origin) {
    const bool shown = spec_.sign == '+' || spec_.sign == ' ';
    const std::string sign = negative ? "-" : shown ? std::string(1, spec_.sign) : "";
    sandbox_.heap().require(static_cast<size_t>(spec_.width));
    sandbox_.charge_bytes(static_cast<size_t>(spec_.width) * 4);
    std::string digits = whole;
    if (spec_.grouping != 0 && !whole.empty()) {
      const size_t others = sign.size() + prefix.size() + rest.size();
      const bool fills = spec_.fill == "0" && spec_.align == '=';
      const auto width = static_cast<size_t>(spec_.width);
      digits = group(whole, spec_.grouping, every, fills && width > others ? width - others : 0);
    }
    digits += rest;
    const auto size = static_cast<int64_t>(sign.size() + prefix.size() + digits.size());
    const auto missing = static_cast<size_t>(std::max<int64_t>(0, spec_.width - size));
    const char align = spec_.align == 0 ? '>' : spec_.align;
    const size_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    const size_t inside = align == '=' ? missing : 0;
    out_.pad(before, spec_.fill, Origin::kTemplate);
    out_.append(sign + prefix, origin);
    out_.pad(inside, spec_.fill, Origin::kTemplate);
    out_.append(digits, origin);
    out_.pad(missing - before - inside, spec_.fill, Origin::kTemplate);
  }

  Sandbox& sandbox_;
  TextBuilder& out_;
  const Spec& spec_;
};

}  // namespace

void format_value(Sandbox& sandbox, TextBuilder& out, const Value& value, std::string_view spec) {
  if (spec.empty()) return print(sandbox, out, value);
  const Spec parsed = parse(spec);
  Formatter formatter(sandbox, out, parsed);
  switch (value.kind) {
    case Kind::kStr:
      return formatter.text(*value.str);
    case Kind::kBool:
    case Kind::kInt:
      return formatter.integer(value);
    case Kind::kFloat:
      return formatter.floating(value);
    default:
      fail("a value of type '", type_name(value), "' takes no format specification");
  }
}

std::string float_digits(double number, char style, int precision, bool alternate) {
  const bool capital = style >= 'A' && style <= 'Z';
  if (!std::isfinite(number)) {
    const std::string name = std::isnan(number) ? "nan" : "inf";
    return capital ? (name == "nan" ? "NAN" : "INF") : name;
  }
  // 'r': like 'g', but keeps a digit behind the point and turns to exponents one digit earlier.
  if (style == 'r') {
    precision = std::max(1, precision);
    std::string scientific = float_digits(number, 'e', precision - 1, alternate);
    const size_t e = scientific.find('e');
    if (std::atoi(scientific.c_str() + e + 1) >= precision - 1) {
      size_t kept = e;
      if (!alternate && scientific.find('.') != std::string::npos) {
        kept = scientific.find_last_not_of('0', e - 1) + 1;
        if (scientific[kept - 1] == '.') kept -= 1;
      }
      return scientific.erase(kept, e - kept);
    }
  }
  char format[16];
  std::snprintf(format, sizeof(format), "%%%s.*%c", alternate ? "#" : "",
                style == 'r' ? 'g' : style);
  std::string text(static_cast<size_t>(precision) + 350, '\0');
  const int size = std::snprintf(text.data(), text.size(), format, precision, number);
  text.resize(static_cast<size_t>(size));
  if (style == 'r' && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace tinyvllm::jinja
