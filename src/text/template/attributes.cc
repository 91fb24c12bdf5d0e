// object.name, object[index] and object[start:stop:step].
//
// As in Jinja2's sandbox, `object.name` prefers what Python calls an attribute, a dict's methods
// say, and falls back on the items; `object[name]` has it the other way round. What would change an
// object or reach into the interpreter is there but undefined.
#include <algorithm>
#include <limits>

#include "text/template/functions.h"
#include "text/template/interpreter.h"
#include "text/template/iterate.h"
#include "text/template/loop.h"
#include "text/template/methods.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

// Attributes that every Python object has, and those that dicts and undefined values have besides.
// A key of such a name can be reached with [] only.
constexpr std::string_view kHidden[] = {
    "__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
    "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
    "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
    "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
    "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
constexpr std::string_view kHiddenInDict[] = {
    "__class_getitem__", "__contains__", "__delitem__",  "__getitem__", "__ior__",    "__iter__",
    "__len__",           "__or__",       "__reversed__", "__ror__",     "__setitem__"};
constexpr std::string_view kHiddenInUndefined[] = {"__add__",     "__bool__",    "__call__",
                                                   "__getattr__", "__getitem__", "__iter__",
                                                   "__len__",     "__module__",  "__slots__"};

bool is_hidden(const Value& object, std::string_view name) {
  if (object.is(Kind::kNamespace)) return name.starts_with('_');  // it stores what it does not show
  if (name.substr(0, 2) != "__") return false;
  const auto in = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return in(kHidden) || (object.is(Kind::kDict) && in(kHiddenInDict)) ||
         (object.is(Kind::kUndefined) && in(kHiddenInUndefined));
}

Value undefined_attribute(Sandbox& sandbox, const Value& object, const Value& name) {
  Undefined* info = sandbox.heap().make<Undefined>();
  info->name = name;
  info->object = object;
  return Value(static_cast<const Undefined*>(info));
}

Value unsafe(Sandbox& sandbox, const Value& object, std::string_view name) {
  const std::string hint =
      str_cat("access to attribute '", name, "' of '", type_name(object), "' object is unsafe");
  return undefined_hint(sandbox, sandbox.heap().copy(hint));
}

Value macro_property(Sandbox& sandbox, const Macro& macro, std::string_view name) {
  Heap& heap = sandbox.heap();
  const MacroBody& body = *macro.body;
  if (name == "name") return body.name.empty() ? Value::none() : new_text(heap, body.name);
  if (name == "catch_kwargs") return Value(body.kwargs.has_value());
  if (name == "catch_varargs") return Value(body.varargs.has_value());
  if (name == "caller") return Value(body.uses_caller);
  if (name == "explicit_caller") return Value(body.explicit_caller);
  if (name != "arguments") return Value();
  std::vector<Value> names;
  for (const MacroBody::Parameter& parameter : body.parameters) {
    names.push_back(Value(parameter.name->text));
  }
  return new_tuple(heap, names);
}

Value number_property(const Value& value, std::string_view name) {
  const bool integer = value.is_int();
  const Value itself = integer ? Value(value.as_int(), value.origin) : value;
  if (name == "real") return itself;
  if (name == "imag") return integer ? Value(int64_t{0}) : Value(0.0);
  if (integer && name == "numerator") return itself;
  if (integer && name == "denominator") return Value(int64_t{1});
  return Value();
}

// Attributes that are no methods.
Value property(Sandbox& sandbox, const Value& object, std::string_view name) {
  switch (object.kind) {
    case Kind::kLoop:
      return loop_property(sandbox, *object.loop, name);
    case Kind::kMacro:
      return macro_property(sandbox, *object.macro, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return number_property(object, name);
    case Kind::kRange:
      if (name == "start") return Value(object.range->start);
      if (name == "stop") return Value(object.range->stop);
      if (name == "step") return Value(object.range->step);
      return Value();
    case Kind::kTuple:
      if (!object.list->group) return Value();
      if (name == "grouper") return object.list->items[0];
      if (name == "list") return object.list->items[1];
      return Value();
    case Kind::kCycler:
      if (name == "current") return object.cycler->items->items[object.cycler->position];
      if (name == "pos") return Value(int64_t{object.cycler->position});
      if (name == "items") return Value::of_tuple(object.cycler->items);
      return Value();
    case Kind::kJoiner:
      if (name == "sep") return object.joiner->separator;
      if (name == "used") return Value(object.joiner->used);
      return Value();
    case Kind::kFunction:
      if (object.function != dict_function() || name != "fromkeys") return Value();
      return Value(fromkeys_function());
    case Kind::kNamespace: {
      const Value* found = object.dict->find(name);
      return found == nullptr ? Value() : *found;
    }
    default:
      return Value();
  }
}

// object[index] itself: kMissing when there is no such item.
Value item(Sandbox& sandbox, const Value& object, const Value& index) {
  if (object.is(Kind::kUndefined)) fail_undefined(object);
  if (object.is(Kind::kDict)) {
    if (!is_hashable(index)) return Value();
    const Value* found = object.dict->find(index);
    return found == nullptr ? Value() : *found;
  }
  const bool sequence = object.is(Kind::kList) || object.is(Kind::kTuple) ||
                        object.is(Kind::kStr) || object.is(Kind::kRange);
  if (!sequence || !index.is_int()) return Value();
  const int64_t size = *length_of(object);
  const int64_t position = index.as_int() < 0 ? index.as_int() + size : index.as_int();
  if (position < 0 || position >= size) return Value();
  if (object.is(Kind::kRange)) return Value(object.range->at(position));
  if (!object.is(Kind::kStr)) return object.list->items[position];
  sandbox.charge_bytes(object.str->ascii() ? 0 : object.str->size);
  return char_at(sandbox, *object.str, object.str->offset_of(static_cast<uint32_t>(position)));
}

int64_t clamp_index(const Value& value, int64_t size, int64_t low, int64_t high) {
  int64_t index = to_int(value, "a slice");
  if (index < 0) index = index < -size ? low : index + size;
  return std::clamp(index, low, high);
}

}  // namespace

Value get_python_attribute(Sandbox& sandbox, const Value& object, std::string_view name,
                           const MethodName* method) {
  if (is_hidden(object, name)) return unsafe(sandbox, object, name);
  if (object.is(Kind::kUndefined)) fail_undefined(object);
  if (method != nullptr) {
    const Native* native = method->by_kind[static_cast<size_t>(object.kind)];
    if (native != nullptr) {
      if (native->call == nullptr) return unsafe(sandbox, object, name);
      return Value(sandbox.heap().make<Method>(Method{object, native}));
    }
  }
  return property(sandbox, object, name);
}

Value get_attribute(Sandbox& sandbox, const Value& object, const Str* name,
                    const MethodName* method) {
  const Value attribute = get_python_attribute(sandbox, object, name->view(), method);
  if (!attribute.missing()) return attribute;
  if (object.is(Kind::kDict)) {
    if (const Value* found = object.dict->find(name->view())) return *found;
  }
  return undefined_attribute(sandbox, object, Value(name));
}

Value get_item(Sandbox& sandbox, const Value& object, const Value& index) {
  const Value found = item(sandbox, object, index);
  if (!found.missing()) return found;
  if (index.is(Kind::kStr)) {
    const std::string_view name = index.str->view();
    const Value attribute = get_python_attribute(sandbox, object, name, find_method_name(name));
    if (!attribute.missing()) return attribute;
  }
  return undefined_attribute(sandbox, object, index);
}

SliceRange slice_range(int64_t size, const Value& start, const Value& stop, const Value& step) {
  const auto given = [](const Value& v) { return !v.missing() && !v.is(Kind::kNone); };
  const int64_t by = given(step) ? to_int(step, "a slice") : 1;
  if (by == 0) fail("the step of a slice cannot be zero");
  SliceRange range{0, 0, by, 0};
  if (by > 0) {
    range.start = given(start) ? clamp_index(start, size, 0, size) : 0;
    range.stop = given(stop) ? clamp_index(stop, size, 0, size) : size;
    if (range.stop > range.start) range.count = (range.stop - range.start - 1) / by + 1;
  } else {
    range.start = given(start) ? clamp_index(start, size, -1, size - 1) : size - 1;
    range.stop = given(stop) ? clamp_index(stop, size, -1, size - 1) : -1;
    // -by would overflow for the smallest integer; so long a stride takes one item at most.
    const int64_t stride = by == std::numeric_limits<int64_t>::min() ? size + 1 : -by;
    if (range.start > range.stop) range.count = (range.start - range.stop - 1) / stride + 1;
  }
  return range;
}

Value get_slice(Sandbox& sandbox, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  Heap& heap = sandbox.heap();
  if (object.is(Kind::kUndefined)) fail_undefined(object);
  const bool sequence = object.is(Kind::kList) || object.is(Kind::kTuple) ||
                        object.is(Kind::kStr) || object.is(Kind::kRange);
  if (!sequence) fail("a value of type '", type_name(object), "' cannot be sliced");
  const SliceRange slice = slice_range(*length_of(object), start, stop, step);
  if (object.is(Kind::kRange)) {
    const Range& range = *object.range;
    Range* part = heap.make<Range>();
    part->start = range.at(slice.start);
    part->step = arithmetic(Op::kMul, Value(range.step), Value(slice.step)).integer;
    part->size = slice.count;
    part->stop = range.at(slice.stop);
    return Value(static_cast<const Range*>(part));
  }
  sandbox.charge(static_cast<uint64_t>(slice.count) / 8 + 1);
  if (object.is(Kind::kStr)) return slice_text(sandbox, *object.str, slice);
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(slice.count));
  for (int64_t i = 0; i < slice.count; ++i) {
    items.push_back(object.list->items[slice.start + i * slice.step]);
  }
  return object.is(Kind::kList) ? new_list(heap, items, object.origin)
                                : new_tuple(heap, items, object.origin);
}

}  // namespace tinyvllm::jinja
