// Built-in filters, tests, functions and methods: what they are called with, and where they are
// found.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "text/template/sandbox.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

struct Keyword {
  std::string_view name;
  Value value;
};

// What a call passes, evaluated.
struct Arguments {
  std::vector<Value> positional;
  std::vector<Keyword> keywords;
};

// `self` is the value a filter or test is applied to, or the object of a method; a function has
// none.
struct Native {
  std::string_view name;
  Value (*call)(Sandbox& sandbox, const Value& self, const Arguments& arguments);
};

const Native* find_filter(std::string_view name);
const Native* find_test(std::string_view name);
const Native* find_function(std::string_view name);
const struct MethodName* find_method_name(std::string_view name);  // methods.h

// Where they are defined, file by file.
std::span<const Native> text_filters();
std::span<const Native> list_filters();
std::span<const Native> lazy_filters();
std::span<const Native> number_filters();
std::span<const Native> html_filters();
std::span<const Native> json_filters();
std::span<const Native> tests();
std::span<const Native> functions();

// The arguments in the order of the parameters, as Python binds them: too many, unknown names and
// missing required ones fail; the rest is kMissing.
class Bound {
 public:
  Bound(std::string_view callee, const Arguments& arguments,
        std::initializer_list<std::string_view> parameters, size_t required);

  bool has(size_t i) const { return !values_[i].missing(); }
  // Given, and not none.
  bool given(size_t i) const { return has(i) && !values_[i].is(Kind::kNone); }
  const Value& operator[](size_t i) const { return values_[i]; }

 private:
  std::vector<Value> values_;
};

// For what Python implements in C: arguments by position only.
void expect_positional(std::string_view callee, const Arguments& arguments, size_t least,
                       size_t most);

}  // namespace tinyvllm::jinja
