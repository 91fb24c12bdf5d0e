#include "text/template/functions.h"

#include <limits>

#include "text/template/iterate.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;  // Jinja2's limit for sandboxed templates

Value range(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  expect_positional("range", arguments, 1, 3);
  const auto part = [&](size_t i) { return to_int(arguments.positional[i], "range"); };
  const size_t given = arguments.positional.size();
  Range* range = sandbox.heap().make<Range>();
  range->start = given == 1 ? 0 : part(0);
  range->stop = given == 1 ? part(0) : part(1);
  range->step = given == 3 ? part(2) : 1;
  if (range->step == 0) fail("range: the step cannot be zero");
  __int128 distance = static_cast<__int128>(range->stop) - range->start;
  __int128 step = range->step;
  if (step < 0) {
    distance = -distance;
    step = -step;
  }
  const __int128 size = distance <= 0 ? 0 : (distance - 1) / step + 1;
  if (size > kLongestRange) fail("range: longer than ", kLongestRange, " items");
  range->size = static_cast<int64_t>(size);
  return Value(static_cast<const Range*>(range));
}

void set_item(Sandbox& sandbox, Dict& dict, const Value& key, const Value& value) {
  sandbox.charge(1);
  if (!is_hashable(key)) fail("unhashable type: '", type_name(key), "'");
  dict.set(sandbox.heap(), key, value);
}

// dict(mapping or pairs, **more).
Dict* make_dict(Sandbox& sandbox, std::string_view callee, const Arguments& arguments) {
  if (arguments.positional.size() > 1) fail(callee, " takes at most one positional argument");
  Dict* dict = sandbox.heap().make<Dict>();
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kUndefined)) fail_undefined(source);
    if (source.is(Kind::kDict)) {
      for (const Dict::Entry& entry : *source.dict) {
        set_item(sandbox, *dict, entry.key, entry.value);
      }
    } else {
      Iterator* pairs = iterate(sandbox, source);
      for (Value pair; pairs->next(pair);) {
        const std::vector<Value> parts = unpack(sandbox, pair, 2);
        set_item(sandbox, *dict, parts[0], parts[1]);
      }
    }
  }
  for (const Keyword& keyword : arguments.keywords) {
    set_item(sandbox, *dict, new_text(sandbox.heap(), keyword.name), keyword.value);
  }
  return dict;
}

Value dict(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  return Value::of_dict(make_dict(sandbox, "dict", arguments));
}

Value fromkeys(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  return dict_fromkeys(sandbox, arguments);
}

Value make_namespace(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  return Value::of_namespace(make_dict(sandbox, "namespace", arguments));
}

Value cycler(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  if (!arguments.keywords.empty()) fail("cycler takes no keyword arguments");
  if (arguments.positional.empty()) fail("cycler: at least one item has to be provided");
  const List* items = new_list(sandbox.heap(), arguments.positional).list;
  return Value(sandbox.heap().make<Cycler>(Cycler{items}));
}

Value joiner(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"}, 0);
  const Value separator = bound.has(0) ? bound[0] : new_text(sandbox.heap(), ", ");
  return Value(sandbox.heap().make<Joiner>(Joiner{separator}));
}

Value raise_exception(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"}, 1);
  fail(to_text(sandbox, bound[0])->view());
}

Value strftime_now(Sandbox& sandbox, const Value&, const Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"}, 1);
  const Str& format = to_str(bound[0], "strftime_now");
  constexpr size_t kLongestFormat = 4096;
  if (format.size > kLongestFormat) fail("strftime_now: the format is too long");
  return new_text(sandbox.heap(), format_time(format.view(), sandbox.now()), format.any_origin());
}

Value lipsum(Sandbox&, const Value&, const Arguments&) {
  fail("lipsum is refused: a prompt is not made of random words");
}

constexpr Native kFunctions[] = {
    {"cycler", cycler},
    {"dict", dict},
    {"joiner", joiner},
    {"lipsum", lipsum},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};
constexpr Native kFromKeys = {"fromkeys", fromkeys};

}  // namespace

Value dict_fromkeys(Sandbox& sandbox, const Arguments& arguments) {
  expect_positional("fromkeys", arguments, 1, 2);
  const Value value = arguments.positional.size() > 1 ? arguments.positional[1] : Value::none();
  Dict* dict = sandbox.heap().make<Dict>();
  Iterator* keys = iterate(sandbox, arguments.positional[0]);
  for (Value key; keys->next(key);) set_item(sandbox, *dict, key, value);
  return Value::of_dict(dict);
}

std::span<const Native> functions() { return kFunctions; }
const Native* dict_function() { return &kFunctions[1]; }
const Native* fromkeys_function() { return &kFromKeys; }

}  // namespace tinyvllm::jinja
