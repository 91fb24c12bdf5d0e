// Walking over values, as a `for` loop or a filter does.
#pragma once

#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace tinyvllm::jinja {

bool is_iterable(const Value& value);

// iter(value); fails when it cannot be walked over. An iterator is walked on from where it stands.
Iterator* iterate(Sandbox& sandbox, const Value& value);

// reversed(value): null when the type cannot be walked backwards.
Iterator* iterate_backwards(Sandbox& sandbox, const Value& value);

// All (remaining) items.
std::vector<Value> to_vector(Sandbox& sandbox, const Value& value);

// Exactly `count` items, as when assigning to a tuple; fails when there are more or fewer.
std::vector<Value> unpack(Sandbox& sandbox, const Value& value, size_t count);

// The character of a string at a byte offset, as a string.
Value char_at(Sandbox& sandbox, const Str& text, uint32_t offset);

}  // namespace tinyvllm::jinja
