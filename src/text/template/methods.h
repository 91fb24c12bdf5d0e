// The methods of Python's types, by name. A name that several types share is one entry.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "text/template/native.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

constexpr size_t kKinds = static_cast<size_t>(Kind::kJoiner) + 1;

struct MethodName {
  // Null where the type has no such method. A method whose `call` is null exists but would change
  // its object: the sandbox refuses it.
  std::array<const Native*, kKinds> by_kind{};
};

// A method that was taken from its object but not called yet.
struct Method {
  Value self;
  const Native* native;
};

std::span<const Native> str_methods();
std::span<const Native> list_methods();
std::span<const Native> tuple_methods();
std::span<const Native> dict_methods();
std::span<const Native> range_methods();
std::span<const Native> int_methods();
std::span<const Native> float_methods();
std::span<const Native> loop_methods();
std::span<const Native> cycler_methods();

}  // namespace tinyvllm::jinja
