// Arithmetic and number texts as Python has them, on 64-bit integers: what would need more is an
// error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/template/ast.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

Value arithmetic(Op op, const Value& left, const Value& right);  // both numbers
Value negate(const Value& value);

int64_t floor_mod(int64_t a, int64_t b);  // b not 0; the sign follows b
int64_t checked_int(double number);       // truncated; fails beyond 64 bits, and for NaN

// -1, 0, 1 as left is smaller, equal, larger; nothing when either is NaN. Exact between the types.
std::optional<int> compare_numbers(const Value& left, const Value& right);

std::string float_repr(double number);  // the shortest digits that read back equal: 1e+16, 0.1, 2.0

// int(text, base) and float(text): nothing when Python would raise ValueError.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// round(number, digits), to even in the middle.
double round_half_even(double number, int64_t digits);

}  // namespace tinyvllm::jinja
