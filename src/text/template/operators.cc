#include "text/template/operators.h"

#include <algorithm>

#include "text/template/format.h"
#include "text/template/html.h"
#include "text/template/iterate.h"
#include "text/template/loop.h"
#include "text/template/numbers.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

std::string_view spelling(Op op) {
  constexpr std::string_view kSpellings[] = {
      "+",   "-",  "*",  "/",  "//", "%",  "**", "+",  "-",  "not",
      "and", "or", "==", "!=", "<",  "<=", ">",  ">=", "in", "not in"};
  return kSpellings[static_cast<size_t>(op)];
}

[[noreturn]] void fail_operands(Op op, const Value& left, const Value& right) {
  if (left.is(Kind::kUndefined)) fail_undefined(left);
  if (right.is(Kind::kUndefined)) fail_undefined(right);
  fail("'", spelling(op), "' is not supported between '", type_name(left), "' and '",
       type_name(right), "'");
}

// Whom an undefined value was looked up in: "dict object", "None".
std::string object_type(const Value& value) {
  return value.is(Kind::kNone) ? "None" : str_cat(type_name(value), " object");
}

std::string quoted(const Value& name) {
  if (name.is(Kind::kStr)) return str_cat("'", printable(name.str->view()), "'");
  if (name.is(Kind::kInt)) return std::to_string(name.integer);
  return str_cat("(", type_name(name), ")");
}

Value concat_text(Sandbox& sandbox, const Str& left, const Str& right) {
  Heap& heap = sandbox.heap();
  sandbox.charge_bytes(size_t{left.size} + right.size);
  if (!left.markup && !right.markup) return Value(concat(heap, left, right));
  const Str* both = concat(heap, *escape_html(sandbox, left), *escape_html(sandbox, right));
  return Value(with_markup(heap, *both, true));
}

Value concat_lists(Sandbox& sandbox, const Value& left, const Value& right) {
  std::vector<Value> items(left.list->begin(), left.list->end());
  sandbox.heap().require((size_t{left.list->size} + right.list->size) * sizeof(Value));
  items.insert(items.end(), right.list->begin(), right.list->end());
  sandbox.charge(items.size());
  const Origin origin = left.origin | right.origin;
  return left.is(Kind::kList) ? new_list(sandbox.heap(), items, origin)
                              : new_tuple(sandbox.heap(), items, origin);
}

// "ab" * 3, [0] * 2.
Value repeat(Sandbox& sandbox, const Value& value, int64_t times) {
  Heap& heap = sandbox.heap();
  const uint64_t count = times < 0 ? 0 : static_cast<uint64_t>(times);
  const bool text = value.is(Kind::kStr);
  const uint64_t unit = text ? value.str->size : value.list->size * sizeof(Value);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(unit, count, &bytes)) bytes = ~uint64_t{0};
  heap.require(bytes);
  sandbox.charge_bytes(bytes);
  if (text) {
    TextBuilder out(heap);
    for (uint64_t i = 0; i < count && unit != 0; ++i) out.append(*value.str);
    return Value(out.finish(value.str->markup));
  }
  std::vector<Value> items;
  for (uint64_t i = 0; i < count && unit != 0; ++i) {
    items.insert(items.end(), value.list->begin(), value.list->end());
  }
  return value.is(Kind::kList) ? new_list(heap, items, value.origin)
                               : new_tuple(heap, items, value.origin);
}

bool is_sequence(const Value& value) {
  return value.is(Kind::kStr) || value.is(Kind::kList) || value.is(Kind::kTuple);
}

bool equal_dicts(Sandbox& sandbox, const Dict& a, const Dict& b) {
  if (a.size != b.size) return false;
  return std::all_of(a.begin(), a.end(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.key);
    return other != nullptr && equal(sandbox, entry.value, *other);
  });
}

bool equal_views(Sandbox& sandbox, const View& a, const View& b) {
  if (a.part != b.part || a.part == View::Part::kValues) return &a == &b;
  if (a.part == View::Part::kItems) return equal_dicts(sandbox, *a.dict, *b.dict);
  const auto in_b = [&](const Dict::Entry& entry) { return b.dict->find(entry.key) != nullptr; };
  return a.dict->size == b.dict->size && std::all_of(a.dict->begin(), a.dict->end(), in_b);
}

// Keys and items of dicts are ordered as sets are: by inclusion.
bool is_set(const Value& value) {
  return value.is(Kind::kView) && value.view->part != View::Part::kValues;
}

bool includes(Sandbox& sandbox, const Value& set, const Value& subset) {
  Iterator* items = iterate(sandbox, subset);
  for (Value item; items->next(item);) {
    if (!contains(sandbox, set, item)) return false;
  }
  return true;
}

bool ordered_sets(Sandbox& sandbox, Op op, const Value& a, const Value& b) {
  if (op == Op::kGt || op == Op::kGe) {
    return ordered_sets(sandbox, op == Op::kGt ? Op::kLt : Op::kLe, b, a);
  }
  const uint32_t left = a.view->dict->size;
  const uint32_t right = b.view->dict->size;
  return (op == Op::kLt ? left < right : left <= right) && includes(sandbox, b, a);
}

template <class T>
bool by_order(Op op, const T& a, const T& b) {
  switch (op) {
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

// <, <=, >, >= between values of one kind.
bool ordered(Sandbox& sandbox, Op op, const Value& a, const Value& b) {
  sandbox.charge(1);
  if (a.is_number() && b.is_number()) {
    const std::optional<int> order = compare_numbers(a, b);
    return order.has_value() && by_order(op, *order, 0);
  }
  if (a.is(Kind::kStr) && b.is(Kind::kStr)) {
    sandbox.charge_bytes(std::min(a.str->size, b.str->size));
    return by_order(op, a.str->view(), b.str->view());  // UTF-8 sorts as its code points do
  }
  if (a.kind == b.kind && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    const uint32_t shared = std::min(a.list->size, b.list->size);
    for (uint32_t i = 0; i < shared; ++i) {
      const Value& left = a.list->items[i];
      const Value& right = b.list->items[i];
      if (!equal(sandbox, left, right)) return ordered(sandbox, op, left, right);
    }
    return by_order(op, a.list->size, b.list->size);
  }
  if (is_set(a) && is_set(b)) return ordered_sets(sandbox, op, a, b);
  fail_operands(op, a, b);
}

bool contains_in_range(Sandbox& sandbox, const Range& range, const Value& item) {
  if (!item.is_number()) return false;
  for (int64_t i = 0; i < range.size; ++i) {
    sandbox.charge(1);
    if (equal(sandbox, Value(range.at(i)), item)) return true;
  }
  return false;
}

bool contains_in_dict(const Dict& dict, const Value& item) {
  if (!is_hashable(item)) fail("unhashable type: '", type_name(item), "'");
  return dict.find(item) != nullptr;
}

}  // namespace

void fail_undefined(const Value& undefined) {
  const Undefined& info = *undefined.undefined;
  if (!info.hint.empty()) fail(info.hint);
  if (info.object.missing()) fail(quoted(info.name), " is undefined");
  if (!info.name.is(Kind::kStr)) {
    fail(object_type(info.object), " has no element ", quoted(info.name));
  }
  fail("'", object_type(info.object), "' has no attribute ", quoted(info.name));
}

void fail_type(std::string_view what, const Value& value) {
  if (value.is(Kind::kUndefined)) fail_undefined(value);
  fail(what, ", found '", type_name(value), "'");
}

Value undefined_name(Sandbox& sandbox, const Str* name) {
  Undefined* info = sandbox.heap().make<Undefined>();
  info->name = Value(name);
  return Value(static_cast<const Undefined*>(info));
}

Value undefined_hint(Sandbox& sandbox, std::string_view hint) {
  Undefined* info = sandbox.heap().make<Undefined>();
  info->hint = hint;
  return Value(static_cast<const Undefined*>(info));
}

bool is_true(Sandbox&, const Value& value) {
  switch (value.kind) {
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0;
    default:
      return length_of(value).value_or(1) != 0;
  }
}

std::optional<int64_t> length_of(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kStr:
      return value.str->chars;
    case Kind::kList:
    case Kind::kTuple:
      return value.list->size;
    case Kind::kDict:
      return value.dict->size;
    case Kind::kView:
      return value.view->dict->size;
    case Kind::kRange:
      return value.range->size;
    case Kind::kLoop:
      return value.loop->length();
    default:
      return std::nullopt;
  }
}

int64_t length(const Value& value) {
  const std::optional<int64_t> known = length_of(value);
  if (!known.has_value()) fail("a value of type '", type_name(value), "' has no length");
  return *known;
}

bool equal(Sandbox& sandbox, const Value& a, const Value& b) {
  sandbox.charge(1);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kStr:
      if (a.str->size != b.str->size) return false;
      sandbox.charge_bytes(a.str->size);
      return a.str->view() == b.str->view();
    case Kind::kList:
    case Kind::kTuple:
      return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(),
                        [&](const Value& x, const Value& y) { return equal(sandbox, x, y); });
    case Kind::kDict:
      return equal_dicts(sandbox, *a.dict, *b.dict);
    case Kind::kView:
      return equal_views(sandbox, *a.view, *b.view);
    case Kind::kMethod:
      return false;
    default:
      return same_key(a, b);
  }
}

bool same_object(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kNone:
      return same_key(a, b);
    case Kind::kFloat:
      return false;
    default:
      return a.str == b.str;
  }
}

bool less(Sandbox& sandbox, const Value& a, const Value& b) {
  return ordered(sandbox, Op::kLt, a, b);
}

bool compare(Sandbox& sandbox, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq:
      return equal(sandbox, a, b);
    case Op::kNe:
      return !equal(sandbox, a, b);
    case Op::kIn:
      return contains(sandbox, b, a);
    case Op::kNotIn:
      return !contains(sandbox, b, a);
    default:
      return ordered(sandbox, op, a, b);
  }
}

bool contains(Sandbox& sandbox, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::kStr:
      if (!item.is(Kind::kStr)) fail("'in' a string needs a string, found '", type_name(item), "'");
      return find_text(sandbox, container.str->view(), item.str->view(), 0) !=
             std::string_view::npos;
    case Kind::kDict:
      return contains_in_dict(*container.dict, item);
    case Kind::kRange:
      return contains_in_range(sandbox, *container.range, item);
    case Kind::kView:
      if (container.view->part == View::Part::kKeys) {
        return contains_in_dict(*container.view->dict, item);
      }
      break;
    default:
      break;
  }
  Iterator* items = iterate(sandbox, container);
  for (Value candidate; items->next(candidate);) {
    if (equal(sandbox, candidate, item)) return true;
  }
  return false;
}

Value binary(Sandbox& sandbox, Op op, const Value& left, const Value& right) {
  sandbox.charge(1);
  if (left.is_number() && right.is_number()) return arithmetic(op, left, right);
  if (op == Op::kMod && left.is(Kind::kStr)) return format_percent(sandbox, *left.str, right);
  if (op == Op::kAdd && left.kind == right.kind) {
    if (left.is(Kind::kStr)) return concat_text(sandbox, *left.str, *right.str);
    if (is_sequence(left)) return concat_lists(sandbox, left, right);
  }
  if (op == Op::kMul && is_sequence(left) && right.is_int()) {
    return repeat(sandbox, left, right.as_int());
  }
  if (op == Op::kMul && left.is_int() && is_sequence(right)) {
    return repeat(sandbox, right, left.as_int());
  }
  fail_operands(op, left, right);
}

Value unary(Sandbox& sandbox, Op op, const Value& value) {
  if (op == Op::kNot) return Value(!is_true(sandbox, value));
  if (value.is(Kind::kUndefined)) fail_undefined(value);
  if (!value.is_number()) fail("a sign before a value of type '", type_name(value), "'");
  if (op == Op::kNeg) return negate(value);
  return value.is(Kind::kBool) ? Value(value.as_int(), value.origin) : value;
}

int64_t to_int(const Value& value, std::string_view what) {
  if (!value.is_int()) fail_type(str_cat(what, ": expected an integer"), value);
  return value.as_int();
}

const Str& to_str(const Value& value, std::string_view what) {
  if (!value.is(Kind::kStr)) fail_type(str_cat(what, ": expected a string"), value);
  return *value.str;
}

}  // namespace tinyvllm::jinja
