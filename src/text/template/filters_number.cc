// Filters for numbers.
#include <cmath>
#include <cstdio>

#include "text/template/native.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

Value abs(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("abs", arguments, 0, 0);
  if (!self.is_number()) fail_type("abs: expected a number", self);
  if (self.is(Kind::kFloat)) return Value(std::fabs(self.number), self.origin);
  return self.as_int() < 0 ? negate(self) : Value(self.as_int(), self.origin);
}

// Text that is no integer may be a float: "42.23"|int is 42. What is neither gives the default.
Value integer(Sandbox&, const Value& self, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"}, 0);
  const Value otherwise = bound.has(0) ? bound[0] : Value(int64_t{0});
  if (self.is(Kind::kUndefined)) fail_undefined(self);
  if (self.is_int()) return Value(self.as_int(), self.origin);
  if (self.is(Kind::kFloat)) {
    if (std::isnan(self.number)) return otherwise;
    return Value(checked_int(self.number), self.origin);
  }
  if (!self.is(Kind::kStr)) return otherwise;
  const Origin origin = self.text_origin();
  const int64_t base = !bound.has(1) ? 10 : bound[1].is_int() ? bound[1].as_int() : -1;
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (const auto number = parse_int(self.str->view(), static_cast<int>(base))) {
      return Value(*number, origin);
    }
  }
  const std::optional<double> number = parse_float(self.str->view());
  if (!number.has_value() || !std::isfinite(*number)) return otherwise;
  return Value(checked_int(*number), origin);
}

Value floating(Sandbox&, const Value& self, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"}, 0);
  if (self.is(Kind::kUndefined)) fail_undefined(self);
  if (self.is_number()) return Value(self.as_float(), self.origin);
  if (self.is(Kind::kStr)) {
    if (const auto number = parse_float(self.str->view())) {
      return Value(*number, self.text_origin());
    }
  }
  return bound.has(0) ? bound[0] : Value(0.0);
}

// An integer to tens, hundreds …, halves to even.
int64_t round_int(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -digits; ++i) unit *= 10;
  const int64_t rest = floor_mod(number, unit);
  const int64_t below = number - rest;
  const bool up = rest * 2 > unit || (rest * 2 == unit && (below / unit) % 2 != 0);
  return up ? arithmetic(Op::kAdd, Value(below), Value(unit)).integer : below;
}

Value round(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"}, 0);
  const Value precision = bound.has(0) ? bound[0] : Value(int64_t{0});
  const std::string_view method = bound.has(1) && bound[1].is(Kind::kStr) ? bound[1].str->view()
                                  : bound.has(1)                          ? "?"
                                                                          : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round: the method must be common, ceil or floor");
  }
  if (!self.is_number()) fail_type("round: expected a number", self);
  if (method == "common") {
    if (precision.is(Kind::kNone)) {
      return self.is_int() ? Value(self.as_int(), self.origin)
                           : Value(checked_int(std::nearbyint(self.number)), self.origin);
    }
    const int64_t digits = to_int(precision, "round");
    if (self.is_int()) return Value(round_int(self.as_int(), digits), self.origin);
    return Value(round_half_even(self.number, digits), self.origin);
  }
  const Value scale = binary(sandbox, Op::kPow, Value(int64_t{10}), precision);
  const Value scaled = binary(sandbox, Op::kMul, self, scale);
  const double number = scaled.as_float();
  const Value whole =
      scaled.is_int()
          ? scaled
          : Value(checked_int(method == "ceil" ? std::ceil(number) : std::floor(number)),
                  self.origin);
  return binary(sandbox, Op::kDiv, whole, scale);
}

Value filesizeformat(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("filesizeformat", arguments, {"binary"}, 0);
  if (self.is(Kind::kUndefined)) fail_undefined(self);
  const std::optional<double> parsed = self.is_number()      ? self.as_float()
                                       : self.is(Kind::kStr) ? parse_float(self.str->view())
                                                             : std::nullopt;
  if (!parsed.has_value()) fail("filesizeformat: expected a number");
  const double bytes = *parsed;
  const bool binary_units = bound.has(0) && is_true(sandbox, bound[0]);
  const double base = binary_units ? 1024 : 1000;
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  std::string text;
  if (bytes == 1) {
    text = "1 Byte";
  } else if (bytes < base) {
    text = str_cat(checked_int(bytes), " Bytes");
  } else {
    size_t i = 0;
    double unit = base * base;
    for (; i + 1 < kPrefixes.size() && !(bytes < unit); ++i) unit *= base;
    char number[400];
    std::snprintf(number, sizeof(number), "%.1f", base * bytes / unit);
    const char prefix = binary_units && i == 0 ? 'K' : kPrefixes[i];
    text = str_cat(number, " ", prefix, binary_units ? "iB" : "B");
  }
  return new_text(sandbox.heap(), text, self.text_origin());
}

constexpr Native kFilters[] = {
    {"abs", abs},     {"filesizeformat", filesizeformat}, {"float", floating}, {"int", integer},
    {"round", round},
};

}  // namespace

std::span<const Native> number_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
