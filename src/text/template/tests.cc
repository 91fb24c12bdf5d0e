// Tests: what follows `is`, and what select and its kin are given by name.
#include <cmath>

#include "text/template/iterate.h"
#include "text/template/native.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

// A test that looks at nothing but the value.
template <bool (*holds)(Sandbox&, const Value&)>
Value simple(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("the test", arguments, {}, 0);
  return Value(holds(sandbox, self));
}

bool defined(Sandbox&, const Value& v) { return !v.is(Kind::kUndefined); }
bool undefined(Sandbox&, const Value& v) { return v.is(Kind::kUndefined); }
bool none(Sandbox&, const Value& v) { return v.is(Kind::kNone); }
bool boolean(Sandbox&, const Value& v) { return v.is(Kind::kBool); }
bool is_false(Sandbox&, const Value& v) { return v.is(Kind::kBool) && !v.boolean; }
bool is_exactly_true(Sandbox&, const Value& v) { return v.is(Kind::kBool) && v.boolean; }
bool integer(Sandbox&, const Value& v) { return v.is(Kind::kInt); }
bool floating(Sandbox&, const Value& v) { return v.is(Kind::kFloat); }
bool number(Sandbox&, const Value& v) { return v.is_number(); }
bool string(Sandbox&, const Value& v) { return v.is(Kind::kStr); }
bool mapping(Sandbox&, const Value& v) { return v.is(Kind::kDict); }
bool iterable(Sandbox&, const Value& v) { return is_iterable(v); }
bool escaped(Sandbox&, const Value& v) { return v.is(Kind::kStr) && v.str->markup; }
bool lower(Sandbox& s, const Value& v) { return has_only_case(s, *to_text(s, v), false); }
bool upper(Sandbox& s, const Value& v) { return has_only_case(s, *to_text(s, v), true); }

bool sequence(Sandbox&, const Value& v) {
  return v.is(Kind::kStr) || v.is(Kind::kList) || v.is(Kind::kTuple) || v.is(Kind::kDict) ||
         v.is(Kind::kRange) || v.is(Kind::kUndefined);
}

bool callable(Sandbox&, const Value& v) {
  return v.is(Kind::kMacro) || v.is(Kind::kFunction) || v.is(Kind::kMethod) ||
         v.is(Kind::kJoiner) || v.is(Kind::kLoop) || v.is(Kind::kUndefined);
}

bool rest_equals(Sandbox& sandbox, const Value& v, const Value& divisor, int64_t rest) {
  return equal(sandbox, binary(sandbox, Op::kMod, v, divisor), Value(rest));
}
bool odd(Sandbox& s, const Value& v) { return rest_equals(s, v, Value(int64_t{2}), 1); }
bool even(Sandbox& s, const Value& v) { return rest_equals(s, v, Value(int64_t{2}), 0); }

Value divisible_by(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("divisibleby", arguments, {"num"}, 1);
  return Value(rest_equals(sandbox, self, bound[0], 0));
}

Value same_as(Sandbox&, const Value& self, const Arguments& arguments) {
  const Bound bound("sameas", arguments, {"other"}, 1);
  return Value(same_object(self, bound[0]));
}

Value in(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("in", arguments, {"seq"}, 1);
  return Value(contains(sandbox, bound[0], self));
}

template <Op op>
Value compares(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("a comparison", arguments, 1, 1);
  return Value(compare(sandbox, op, self, arguments.positional[0]));
}

// 'name' is filter, 'name' is test.
template <const Native* (*find)(std::string_view)>
Value exists(Sandbox&, const Value& self, const Arguments& arguments) {
  const Bound bound("the test", arguments, {}, 0);
  if (!is_hashable(self)) fail("unhashable type: '", type_name(self), "'");
  return Value(self.is(Kind::kStr) && find(self.str->view()) != nullptr);
}

constexpr Native kTests[] = {
    {"boolean", simple<boolean>},
    {"callable", simple<callable>},
    {"defined", simple<defined>},
    {"divisibleby", divisible_by},
    {"escaped", simple<escaped>},
    {"even", simple<even>},
    {"false", simple<is_false>},
    {"filter", exists<find_filter>},
    {"float", simple<floating>},
    {"in", in},
    {"integer", simple<integer>},
    {"iterable", simple<iterable>},
    {"lower", simple<lower>},
    {"mapping", simple<mapping>},
    {"none", simple<none>},
    {"number", simple<number>},
    {"odd", simple<odd>},
    {"sameas", same_as},
    {"sequence", simple<sequence>},
    {"string", simple<string>},
    {"test", exists<find_test>},
    {"true", simple<is_exactly_true>},
    {"undefined", simple<undefined>},
    {"upper", simple<upper>},
    {"==", compares<Op::kEq>},
    {"eq", compares<Op::kEq>},
    {"equalto", compares<Op::kEq>},
    {"!=", compares<Op::kNe>},
    {"ne", compares<Op::kNe>},
    {">", compares<Op::kGt>},
    {"gt", compares<Op::kGt>},
    {"greaterthan", compares<Op::kGt>},
    {">=", compares<Op::kGe>},
    {"ge", compares<Op::kGe>},
    {"<", compares<Op::kLt>},
    {"lt", compares<Op::kLt>},
    {"lessthan", compares<Op::kLt>},
    {"<=", compares<Op::kLe>},
    {"le", compares<Op::kLe>},
};

}  // namespace

std::span<const Native> tests() { return kTests; }

}  // namespace tinyvllm::jinja
