// String formatting: the % operator, str.format(), and the mini-language of format specifications
// that the latter uses.
#pragma once

#include "text/template/native.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

// format % value, where value is a tuple of arguments, a dict for %(name)s, or the one argument.
Value format_percent(Sandbox& sandbox, const Str& format, const Value& value);

// format.format(*positional, **keywords). `mapping` serves format_map() and is else kMissing.
Value format_braces(Sandbox& sandbox, const Str& format, const Arguments& arguments,
                    const Value& mapping);

// format(value, spec).
void format_value(Sandbox& sandbox, TextBuilder& out, const Value& value, std::string_view spec);

// Digits of a double in Python's styles: 'e', 'f', 'g' or their capitals, '%'; `alternate` is '#'.
std::string float_digits(double number, char style, int precision, bool alternate);

}  // namespace tinyvllm::jinja
