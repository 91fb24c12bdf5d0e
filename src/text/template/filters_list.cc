// Filters that read a whole sequence at once.
#include <algorithm>

#include "text/template/getter.h"
#include "text/template/iterate.h"
#include "text/template/methods.h"
#include "text/template/native.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

bool flag(Sandbox& sandbox, const Bound& bound, size_t i) {
  return bound.has(i) && is_true(sandbox, bound[i]);
}

// Sorts by keys that are already there. Stable, also backwards.
template <class Key, class Less>
std::vector<Value> sorted(const std::vector<Value>& items, const std::vector<Key>& keys,
                          bool backwards, const Less& less_than) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return backwards ? less_than(keys[b], keys[a]) : less_than(keys[a], keys[b]);
  });
  std::vector<Value> result;
  for (const size_t i : order) result.push_back(items[i]);
  return result;
}

std::vector<Value> keys_of(Sandbox& sandbox, const std::vector<Value>& items, const Getter& get) {
  std::vector<Value> keys;
  for (const Value& item : items) keys.push_back(get(sandbox, item));
  return keys;
}

Value first(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("first", arguments, {}, 0);
  Value item;
  if (iterate(sandbox, self)->next(item)) return item;
  return undefined_hint(sandbox, "no first item, the sequence was empty");
}

Value last(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("last", arguments, {}, 0);
  Iterator* items = iterate_backwards(sandbox, self);
  if (items == nullptr) fail("last: a value of type '", type_name(self), "' has no last item");
  Value item;
  if (items->next(item)) return item;
  return undefined_hint(sandbox, "no last item, the sequence was empty");
}

Value count(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("length", arguments, 0, 0);
  return Value(length(self), self.text_origin());
}

Value list(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("list", arguments, {}, 0);
  return new_list(sandbox.heap(), to_vector(sandbox, self), self.text_origin());
}

Value joined(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"}, 0);
  const Getter get = make_getter(sandbox, bound[1]);
  const Str* separator = bound.has(0) ? to_text(sandbox, bound[0]) : nullptr;
  TextBuilder out(sandbox.heap());
  bool more = false;
  Iterator* items = iterate(sandbox, self);
  for (Value item; items->next(item);) {
    if (more && separator != nullptr) out.append(*separator);
    more = true;
    print(sandbox, out, get(sandbox, item));
  }
  return Value(out.finish());
}

// Keys are compared as lists of one or more attributes, so that items which cannot be ordered are
// fine as long as they are equal.
Value sort(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  std::vector<Getter> getters;
  if (bound.given(2) && bound[2].is(Kind::kStr)) {
    const Str* comma = make_str(sandbox.heap(), ",", Origin::kTemplate);
    for (const Value& part : split(sandbox, *bound[2].str, comma, -1)) {
      getters.push_back(make_getter(sandbox, part));
    }
  } else {
    getters.push_back(make_getter(sandbox, bound[2]));
  }
  for (Getter& get : getters) get.fold_case = !flag(sandbox, bound, 1);
  const std::vector<Value> items = to_vector(sandbox, self);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const Getter& get : getters) parts.push_back(get(sandbox, item));
    keys.push_back(new_list(sandbox.heap(), parts));
  }
  const auto by_key = [&](const Value& a, const Value& b) { return less(sandbox, a, b); };
  return new_list(sandbox.heap(), sorted(items, keys, flag(sandbox, bound, 0), by_key),
                  self.origin);
}

Value dictsort(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  const std::string_view by = bound.has(1) ? to_str(bound[1], "dictsort").view() : "key";
  if (by != "key" && by != "value") fail("dictsort: by must be 'key' or 'value'");
  if (!self.is(Kind::kDict)) fail_type("dictsort needs a mapping", self);
  const Value view =
      Value(sandbox.heap().make<View>(View{self.dict, View::Part::kItems}), self.origin);
  const std::vector<Value> items = to_vector(sandbox, view);
  Getter get = make_getter(sandbox, Value(int64_t{by == "key" ? 0 : 1}));
  get.fold_case = !flag(sandbox, bound, 0);
  const auto by_key = [&](const Value& a, const Value& b) { return less(sandbox, a, b); };
  const std::vector<Value> keys = keys_of(sandbox, items, get);
  return new_list(sandbox.heap(), sorted(items, keys, flag(sandbox, bound, 2), by_key),
                  self.origin);
}

Value group(Sandbox& sandbox, const Value& key, const std::vector<Value>& members) {
  const Value tuple = new_tuple(sandbox.heap(), {key, new_list(sandbox.heap(), members)});
  List* named = sandbox.heap().make<List>(*tuple.list);
  named->group = true;
  return Value::of_tuple(named);
}

Value groupby(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Getter get = make_getter(sandbox, bound[0]);
  get.fallback = bound[1];
  Getter folded = get;
  folded.fold_case = !flag(sandbox, bound, 2);
  std::vector<Value> items = to_vector(sandbox, self);
  const auto by_key = [&](const Value& a, const Value& b) { return less(sandbox, a, b); };
  items = sorted(items, keys_of(sandbox, items, folded), false, by_key);
  std::vector<Value> groups;
  std::vector<Value> members;
  for (size_t i = 0; i < items.size(); ++i) {
    members.push_back(items[i]);
    const Value key = folded(sandbox, items[i]);
    const bool ends = i + 1 == items.size() || !equal(sandbox, key, folded(sandbox, items[i + 1]));
    if (!ends) continue;
    groups.push_back(group(sandbox, get(sandbox, members[0]), members));
    members.clear();
  }
  return new_list(sandbox.heap(), groups, self.origin);
}

template <bool largest>
Value extreme(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  Getter get = make_getter(sandbox, bound[1]);
  get.fold_case = !flag(sandbox, bound, 0);
  Iterator* items = iterate(sandbox, self);
  Value best;
  Value best_key;
  for (Value item; items->next(item);) {
    const Value key = get(sandbox, item);
    if (best.missing() || compare(sandbox, largest ? Op::kGt : Op::kLt, key, best_key)) {
      best = item;
      best_key = key;
    }
  }
  return best.missing() ? undefined_hint(sandbox, "no aggregated item, the sequence was empty")
                        : best;
}

Value sum(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"}, 0);
  const Getter get = make_getter(sandbox, bound[0]);
  Value total = bound.has(1) ? bound[1] : Value(int64_t{0});
  if (total.is(Kind::kStr)) fail("sum: strings cannot be summed, join them");
  Iterator* items = iterate(sandbox, self);
  for (Value item; items->next(item);) {
    total = binary(sandbox, Op::kAdd, total, get(sandbox, item));
  }
  return total;
}

Value otherwise(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"}, 0);
  const bool absent =
      self.is(Kind::kUndefined) || (flag(sandbox, bound, 1) && !is_true(sandbox, self));
  if (!absent) return self;
  return bound.has(0) ? bound[0] : new_text(sandbox.heap(), "");
}

Value attr(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"}, 1);
  const Str& name = to_str(bound[0], "attr");
  const Value found =
      get_python_attribute(sandbox, self, name.view(), find_method_name(name.view()));
  if (!found.missing()) return found;
  Undefined* info = sandbox.heap().make<Undefined>();
  info->name = bound[0];
  info->object = self;
  return Value(static_cast<const Undefined*>(info));
}

Value random(Sandbox&, const Value&, const Arguments&) {
  fail("random is refused: the same conversation gives the same prompt");
}

constexpr Native kFilters[] = {
    {"attr", attr},          {"count", count},   {"d", otherwise},     {"default", otherwise},
    {"dictsort", dictsort},  {"first", first},   {"groupby", groupby}, {"join", joined},
    {"last", last},          {"length", count},  {"list", list},       {"max", extreme<true>},
    {"min", extreme<false>}, {"random", random}, {"sort", sort},       {"sum", sum},
};

}  // namespace

Value Getter::operator()(Sandbox& sandbox, const Value& item) const {
  Value value = item;
  if (path != nullptr) {
    for (const Value& part : *path) {
      value = get_item(sandbox, value, part);
      const bool replace = !fallback.missing() && !fallback.is(Kind::kNone);
      if (replace && value.is(Kind::kUndefined)) value = fallback;
    }
  }
  if (fold_case && value.is(Kind::kStr)) {
    value = Value(change_case(sandbox, *value.str, Case::kLower));
  }
  return value;
}

Getter make_getter(Sandbox& sandbox, const Value& attribute) {
  Getter getter;
  if (attribute.missing() || attribute.is(Kind::kNone)) return getter;
  std::vector<Value> path = {attribute};
  if (attribute.is(Kind::kStr)) {
    const Str* dot = make_str(sandbox.heap(), ".", Origin::kTemplate);
    path = split(sandbox, *attribute.str, dot, -1);
    for (Value& part : path) {
      const std::string_view text = part.str->view();
      const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
      if (digits && text.size() < 18) part = Value(int64_t{std::stoll(std::string(text))});
    }
  }
  getter.path = new_list(sandbox.heap(), path).list;
  return getter;
}

std::span<const Native> list_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
