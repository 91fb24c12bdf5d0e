// The methods of every type but str. Those that would change their object are listed without a
// function: the sandbox knows them and refuses.
#include <bit>
#include <cmath>

#include "text/template/functions.h"
#include "text/template/iterate.h"
#include "text/template/loop.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace tinyvllm::jinja {
namespace {

// -- Sequences

Value count(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("count", arguments, 1, 1);
  int64_t found = 0;
  for (const Value& item : *self.list) found += equal(sandbox, item, arguments.positional[0]);
  return Value(found, self.origin);
}

Value index(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("index", arguments, 1, 3);
  const auto part = [&](size_t i) {
    return i < arguments.positional.size() ? arguments.positional[i] : Value();
  };
  for (const Value& bound : {part(1), part(2)}) {
    if (!bound.missing()) to_int(bound, "index");
  }
  const SliceRange range = slice_range(self.list->size, part(1), part(2), Value());
  for (int64_t i = range.start; i < range.stop; ++i) {
    if (equal(sandbox, self.list->items[i], arguments.positional[0])) return Value(i, self.origin);
  }
  fail("index: the value is not in the list");
}

Value copy(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("copy", arguments, 0, 0);
  return self;  // lists and dicts do not change, so the same one will do
}

constexpr Native kListMethods[] = {
    {"append", nullptr}, {"clear", nullptr},   {"copy", copy},      {"count", count},
    {"extend", nullptr}, {"index", index},     {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr}, {"reverse", nullptr}, {"sort", nullptr},
};
constexpr Native kTupleMethods[] = {{"count", count}, {"index", index}};

Value range_index(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("index", arguments, 1, 1);
  for (int64_t i = 0; i < self.range->size; ++i) {
    if (equal(sandbox, Value(self.range->at(i)), arguments.positional[0])) return Value(i);
  }
  fail("index: the value is not in the range");
}

Value range_count(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("count", arguments, 1, 1);
  return Value(int64_t{contains(sandbox, self, arguments.positional[0])});
}

constexpr Native kRangeMethods[] = {{"count", range_count}, {"index", range_index}};

// -- Dicts

template <View::Part part>
Value view(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("keys, values or items", arguments, 0, 0);
  return Value(sandbox.heap().make<View>(View{self.dict, part}), self.origin);
}

Value get(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("get", arguments, 1, 2);
  const Value& key = arguments.positional[0];
  if (!is_hashable(key)) fail("unhashable type: '", type_name(key), "'");
  if (const Value* found = self.dict->find(key)) return *found;
  return arguments.positional.size() > 1 ? arguments.positional[1] : Value::none();
}

Value fromkeys(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  return dict_fromkeys(sandbox, arguments);
}

constexpr Native kDictMethods[] = {
    {"clear", nullptr},
    {"copy", copy},
    {"fromkeys", fromkeys},
    {"get", get},
    {"items", view<View::Part::kItems>},
    {"keys", view<View::Part::kKeys>},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
    {"values", view<View::Part::kValues>},
};

// -- Numbers

Value conjugate(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("conjugate", arguments, 0, 0);
  return self.is(Kind::kFloat) ? self : Value(self.as_int(), self.origin);
}

uint64_t magnitude(const Value& value) {
  const int64_t number = value.as_int();
  return number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
}

Value bit_length(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("bit_length", arguments, 0, 0);
  return Value(static_cast<int64_t>(std::bit_width(magnitude(self))), self.origin);
}

Value bit_count(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("bit_count", arguments, 0, 0);
  return Value(int64_t{std::popcount(magnitude(self))}, self.origin);
}

Value is_integer(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("is_integer", arguments, 0, 0);
  return Value(std::isfinite(self.number) && std::floor(self.number) == self.number);
}

constexpr Native kIntMethods[] = {
    {"bit_count", bit_count}, {"bit_length", bit_length}, {"conjugate", conjugate}};
constexpr Native kFloatMethods[] = {{"conjugate", conjugate}, {"is_integer", is_integer}};

// -- loop and cycler

Value loop_cycle(Sandbox&, const Value& self, const Arguments& arguments) {
  if (!arguments.keywords.empty()) fail("cycle takes no keyword arguments");
  const auto count = static_cast<int64_t>(arguments.positional.size());
  if (count == 0) fail("cycle: no items given");
  return arguments.positional[static_cast<size_t>(self.loop->index0 % count)];
}

Value loop_changed(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  if (!arguments.keywords.empty()) fail("changed takes no keyword arguments");
  const Value now = new_tuple(sandbox.heap(), arguments.positional);
  Value& last = self.loop->last_changed;
  if (!last.missing() && equal(sandbox, last, now)) return Value(false);
  last = now;
  return Value(true);
}

Value cycler_next(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("next", arguments, 0, 0);
  Cycler& cycler = *self.cycler;
  const Value current = cycler.items->items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items->size;
  return current;
}

Value cycler_reset(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("reset", arguments, 0, 0);
  self.cycler->position = 0;
  return Value::none();
}

constexpr Native kLoopMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};
constexpr Native kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

}  // namespace

std::span<const Native> list_methods() { return kListMethods; }
std::span<const Native> tuple_methods() { return kTupleMethods; }
std::span<const Native> range_methods() { return kRangeMethods; }
std::span<const Native> dict_methods() { return kDictMethods; }
std::span<const Native> int_methods() { return kIntMethods; }
std::span<const Native> float_methods() { return kFloatMethods; }
std::span<const Native> loop_methods() { return kLoopMethods; }
std::span<const Native> cycler_methods() { return kCyclerMethods; }

}  // namespace tinyvllm::jinja
