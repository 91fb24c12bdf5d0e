#include "text/template/numbers.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/utf8.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();

[[noreturn]] void overflow() { fail("an integer beyond 64 bits"); }

int64_t floor_div(int64_t a, int64_t b) {
  if (a == kMinInt && b == -1) overflow();
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double float_mod(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((rest < 0) != (b < 0)) rest += b;
  return rest;
}

double float_floor_div(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value int_power(int64_t base, int64_t exponent, Origin origin) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)), origin);
  }
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent == 0) return Value(result, origin);
    if (__builtin_mul_overflow(base, base, &base)) overflow();
  }
}

Value float_power(double base, double exponent, Origin origin) {
  if (base == 0 && exponent < 0) fail("0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent)) {
    fail("a negative number cannot be raised to a fractional power");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    fail("the power is beyond a double");
  }
  return Value(result, origin);
}

Value int_arithmetic(Op op, int64_t a, int64_t b, Origin origin) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      return Value(result, origin);
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      return Value(result, origin);
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      return Value(result, origin);
    case Op::kPow:
      return int_power(a, b, origin);
    default:
      break;
  }
  if (b == 0) fail("division by zero");
  if (op == Op::kFloorDiv) return Value(floor_div(a, b), origin);
  if (op == Op::kMod) return Value(floor_mod(a, b), origin);
  constexpr int64_t kExact = int64_t{1} << 53;
  if (a > -kExact && a < kExact && b > -kExact && b < kExact) {
    return Value(static_cast<double>(a) / static_cast<double>(b), origin);
  }
  // Beyond 2^53 a double cannot hold the operands; a long double of 64 bits can.
  return Value(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)),
               origin);
}

Value float_arithmetic(Op op, double a, double b, Origin origin) {
  switch (op) {
    case Op::kAdd:
      return Value(a + b, origin);
    case Op::kSub:
      return Value(a - b, origin);
    case Op::kMul:
      return Value(a * b, origin);
    case Op::kPow:
      return float_power(a, b, origin);
    default:
      break;
  }
  if (b == 0) fail("division by zero");
  if (op == Op::kFloorDiv) return Value(float_floor_div(a, b), origin);
  if (op == Op::kMod) return Value(float_mod(a, b), origin);
  return Value(a / b, origin);
}

// White space around it and single underscores between digits are allowed; nothing if misplaced.
std::optional<std::string> plain_digits(std::string_view text, int (*is_digit)(int)) {
  while (const size_t bytes = unicode::space_bytes(text, 0)) text.remove_prefix(bytes);
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    if (!unicode::is_space(utf8_next(text, at))) end = at;
  }
  text = text.substr(0, end);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() ||
               is_digit(static_cast<unsigned char>(text[i - 1])) == 0 ||
               is_digit(static_cast<unsigned char>(text[i + 1])) == 0) {
      return std::nullopt;
    }
  }
  return digits;
}

}  // namespace

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value arithmetic(Op op, const Value& left, const Value& right) {
  const Origin origin = left.origin | right.origin;
  if (left.is_int() && right.is_int()) {
    return int_arithmetic(op, left.as_int(), right.as_int(), origin);
  }
  return float_arithmetic(op, left.as_float(), right.as_float(), origin);
}

Value negate(const Value& value) {
  if (!value.is_int()) return Value(-value.number, value.origin);
  if (value.as_int() == kMinInt) overflow();
  return Value(-value.as_int(), value.origin);
}

int64_t checked_int(double number) {
  if (std::isnan(number)) fail("NaN has no integer value");
  if (std::isinf(number)) fail("infinity has no integer value");
  if (number < -0x1p63 || number >= 0x1p63) overflow();
  return static_cast<int64_t>(number);
}

std::optional<int> compare_numbers(const Value& left, const Value& right) {
  const auto order = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  if (left.is_int() && right.is_int()) return order(left.as_int(), right.as_int());
  if (left.is(Kind::kFloat) && right.is(Kind::kFloat)) {
    if (std::isnan(left.number) || std::isnan(right.number)) return std::nullopt;
    return order(left.number, right.number);
  }
  if (left.is(Kind::kFloat)) {
    const std::optional<int> flipped = compare_numbers(right, left);
    return flipped.has_value() ? std::optional(-*flipped) : std::nullopt;
  }
  const double number = right.number;
  if (std::isnan(number)) return std::nullopt;
  if (number >= 0x1p63) return -1;
  if (number < -0x1p63) return 1;
  const double whole = std::floor(number);
  const int by_whole = order(left.as_int(), static_cast<int64_t>(whole));
  return by_whole != 0 ? by_whole : number > whole ? -1 : 0;
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  std::string text(buffer, scientific.ptr);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::fixed);
  text.assign(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  std::optional<std::string> digits = plain_digits(text, std::isxdigit);
  if (!digits.has_value()) return std::nullopt;
  std::string_view rest = *digits;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest.size() > 1 && rest[0] == '0') {
    const char letter = static_cast<char>(rest[1] | 0x20);
    const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == prefixed || base == 0)) {
      base = prefixed;
      rest.remove_prefix(2);
    } else if (base == 0 && rest.find_first_not_of('0') != std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (base == 0) base = 10;
  uint64_t magnitude = 0;
  const auto [end, status] =
      std::from_chars(rest.data(), rest.data() + rest.size(), magnitude, base);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (status == std::errc::invalid_argument) return std::nullopt;
  const uint64_t most = negative ? uint64_t{1} << 63 : (uint64_t{1} << 63) - 1;
  if (status != std::errc() || magnitude > most) overflow();
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<double> parse_float(std::string_view text) {
  std::optional<std::string> digits = plain_digits(text, std::isdigit);
  if (!digits.has_value()) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return std::nullopt;
  // The library's own spellings of infinity and NaN, some of which Python does not take.
  if (rest.find('(') != std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (status == std::errc::invalid_argument) return std::nullopt;
  if (status == std::errc::result_out_of_range)
    number = std::strtod(std::string(rest).c_str(), nullptr);
  return negative ? -number : number;
}

double round_half_even(double number, int64_t digits) {
  constexpr int64_t kEnough = 330;  // no double has more decimals that matter
  if (!std::isfinite(number) || digits > kEnough) return number;
  if (digits < -kEnough) return std::copysign(0.0, number);
  if (digits >= 0) {
    char text[1024];
    std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(digits), number);
    return std::strtod(text, nullptr);
  }
  const double power = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / power) * power;
}

}  // namespace tinyvllm::jinja
