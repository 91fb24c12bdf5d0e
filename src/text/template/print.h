// Values as text: str() and repr(), with the marks of every part kept.
#pragma once

#include "text/template/value.h"

namespace tinyvllm::jinja {

void print(Sandbox& sandbox, TextBuilder& out, const Value& value);       // str(value)
void print_repr(Sandbox& sandbox, TextBuilder& out, const Value& value);  // repr(value)

// str(value) as a Str; a string is returned as it is.
const Str* to_text(Sandbox& sandbox, const Value& value);

// A string with quotes and escapes.
void print_quoted(TextBuilder& out, const Str& text);

// With an escape for every character beyond ASCII.
const Str* to_ascii(Sandbox& sandbox, const Str& text);

}  // namespace tinyvllm::jinja
