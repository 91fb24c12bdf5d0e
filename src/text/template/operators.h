// What Python's operators do to values: truth, equality, order, membership, arithmetic, subscripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/template/ast.h"
#include "text/template/native.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

[[noreturn]] void fail_undefined(const Value& undefined);
// Fails with "unsupported operand …" in words that name the types.
[[noreturn]] void fail_type(std::string_view what, const Value& value);

Value undefined_name(Sandbox& sandbox, const Str* name);
Value undefined_hint(Sandbox& sandbox, std::string_view hint);

bool is_true(Sandbox& sandbox, const Value& value);
std::optional<int64_t> length_of(const Value& value);  // nothing: the type has no length
int64_t length(const Value& value);                    // fails instead

bool equal(Sandbox& sandbox, const Value& a, const Value& b);
bool same_object(const Value& a, const Value& b);  // Python's `is`
bool less(Sandbox& sandbox, const Value& a, const Value& b);
bool compare(Sandbox& sandbox, Op op, const Value& a, const Value& b);
bool contains(Sandbox& sandbox, const Value& container, const Value& item);

Value binary(Sandbox& sandbox, Op op, const Value& left, const Value& right);
Value unary(Sandbox& sandbox, Op op, const Value& value);

// object.name and object[index] by the rules of the sandbox: Undefined where there is nothing.
Value get_attribute(Sandbox& sandbox, const Value& object, const Str* name,
                    const MethodName* method);
Value get_item(Sandbox& sandbox, const Value& object, const Value& index);
// Only what Python itself calls an attribute: no look among the items of a dict.
Value get_python_attribute(Sandbox& sandbox, const Value& object, std::string_view name,
                           const MethodName* method);

// object[start:stop:step]; parts that were left out are kMissing.
Value get_slice(Sandbox& sandbox, const Value& object, const Value& start, const Value& stop,
                const Value& step);
struct SliceRange {  // the positions a slice of a sequence picks
  int64_t start, stop, step, count;
};
SliceRange slice_range(int64_t size, const Value& start, const Value& stop, const Value& step);

int64_t to_int(const Value& value, std::string_view what);  // an int or bool, or fails
const Str& to_str(const Value& value, std::string_view what);

}  // namespace tinyvllm::jinja
