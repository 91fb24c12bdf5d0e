// Filters that are Python generators: they read their input, and fail, only as they are walked
// over, and can be walked over once. As values they are true, whatever they will turn out to hold.
#include "text/template/getter.h"
#include "text/template/iterate.h"
#include "text/template/native.h"
#include "text/template/operators.h"
#include "text/template/text_ops.h"

namespace tinyvllm::jinja {
namespace {

// Arguments kept until the first item is asked for.
struct Kept {
  Kept(Heap& heap, const Arguments& arguments)
      : positional(new_list(heap, arguments.positional).list),
        keywords(heap.array<Keyword>(arguments.keywords.size())),
        num_keywords(arguments.keywords.size()) {
    std::copy(arguments.keywords.begin(), arguments.keywords.end(), keywords);
  }
  Arguments from(uint32_t first) const {
    Arguments arguments;
    if (first < positional->size) {
      arguments.positional.assign(positional->begin() + first, positional->end());
    }
    arguments.keywords.assign(keywords, keywords + num_keywords);
    return arguments;
  }
  const List* positional;
  Keyword* keywords;
  size_t num_keywords;
};

// The common part: one step down the chain of generators, and the input opened on the first step.
struct Generator : Iterator {
  Generator(Sandbox& s, const Value& i) : sandbox(s), input(i) {}
  bool next(Value& out) final {
    const Nesting nesting(sandbox);
    sandbox.charge(1);
    if (done) return false;
    if (source == nullptr && !open()) {
      done = true;
      return false;
    }
    done = !produce(out);
    return !done;
  }
  virtual bool open() {
    source = iterate(sandbox, input);
    return true;
  }
  virtual bool produce(Value& out) = 0;

  Sandbox& sandbox;
  Value input;
  Iterator* source = nullptr;
  bool done = false;

 protected:
  ~Generator() = default;
};

struct Map final : Generator {
  Map(Sandbox& s, const Value& i, const Arguments& a) : Generator(s, i), kept(s.heap(), a) {}
  bool open() override {
    if (!is_true(sandbox, input)) return false;
    const Arguments arguments = kept.from(0);
    if (!arguments.positional.empty()) {
      name = arguments.positional[0];
      return Generator::open();
    }
    Value attribute;
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name == "attribute") attribute = keyword.value;
    }
    if (attribute.missing()) fail("map needs the name of a filter, or an attribute");
    get = make_getter(sandbox, attribute);
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name == "default") {
        get.fallback = keyword.value;
      } else if (keyword.name != "attribute") {
        fail("map takes no argument '", printable(keyword.name), "'");
      }
    }
    return Generator::open();
  }
  bool produce(Value& out) override {
    if (!source->next(out)) return false;
    if (name.missing()) {
      out = get(sandbox, out);
      return true;
    }
    if (!is_hashable(name)) fail("unhashable type: '", type_name(name), "'");
    const Native* filter = name.is(Kind::kStr) ? find_filter(name.str->view()) : nullptr;
    if (filter == nullptr) fail("map: no such filter");
    out = filter->call(sandbox, out, kept.from(1));
    return true;
  }
  Kept kept;
  Value name;
  Getter get;
};

// select, reject, selectattr, rejectattr.
struct Select final : Generator {
  Select(Sandbox& s, const Value& i, const Arguments& a, bool w, bool attribute)
      : Generator(s, i), kept(s.heap(), a), wanted(w), by_attribute(attribute) {}
  bool open() override {
    if (!is_true(sandbox, input)) return false;
    if (by_attribute) {
      if (kept.positional->size == 0) fail("selectattr and rejectattr need an attribute");
      get = make_getter(sandbox, kept.positional->items[0]);
    }
    return Generator::open();
  }
  bool produce(Value& out) override {
    while (source->next(out)) {
      sandbox.charge(1);
      if (passes(get(sandbox, out)) == wanted) return true;
    }
    return false;
  }
  bool passes(const Value& value) {
    const uint32_t at = by_attribute ? 1 : 0;
    if (at >= kept.positional->size) return is_true(sandbox, value);
    const Value& name = kept.positional->items[at];
    if (!is_hashable(name)) fail("unhashable type: '", type_name(name), "'");
    const Native* test = name.is(Kind::kStr) ? find_test(name.str->view()) : nullptr;
    if (test == nullptr) fail("select or reject: no such test");
    return is_true(sandbox, test->call(sandbox, value, kept.from(at + 1)));
  }
  Kept kept;
  Getter get;
  bool wanted;
  bool by_attribute;
};

struct Unique final : Generator {
  Unique(Sandbox& s, const Value& i, const Getter& g)
      : Generator(s, i), get(g), seen(s.heap().make<Dict>()) {}
  bool produce(Value& out) override {
    while (source->next(out)) {
      sandbox.charge(1);
      const Value key = get(sandbox, out);
      if (!is_hashable(key)) fail("unhashable type: '", type_name(key), "'");
      if (seen->find(key) != nullptr) continue;
      seen->set(sandbox.heap(), key, Value());
      return true;
    }
    return false;
  }
  Getter get;
  Dict* seen;
};

struct Items final : Generator {
  using Generator::Generator;
  bool open() override {
    if (input.is(Kind::kUndefined)) return false;
    if (!input.is(Kind::kDict)) fail("items: expected a mapping, found '", type_name(input), "'");
    const View* view = sandbox.heap().make<View>(View{input.dict, View::Part::kItems});
    source = iterate(sandbox, Value(view, input.origin));
    return true;
  }
  bool produce(Value& out) override { return source->next(out); }
};

struct Batch final : Generator {
  Batch(Sandbox& s, const Value& i, const Value& c, const Value& f)
      : Generator(s, i), count(c), fill(f) {}
  bool produce(Value& out) override {
    std::vector<Value> batch;
    if (!waiting.missing()) batch.push_back(std::exchange(waiting, Value()));
    for (Value item; source->next(item);) {
      if (equal(sandbox, Value(static_cast<int64_t>(batch.size())), count)) {
        waiting = item;
        out = new_list(sandbox.heap(), batch, input.origin);
        return true;
      }
      batch.push_back(item);
    }
    if (batch.empty()) return false;
    if (!fill.missing() && !fill.is(Kind::kNone)) {
      const int64_t wanted = to_int(count, "batch");
      if (wanted > 0) sandbox.heap().require(static_cast<uint64_t>(wanted));
      while (static_cast<int64_t>(batch.size()) < wanted) {
        sandbox.charge(1);
        batch.push_back(fill);
      }
    }
    out = new_list(sandbox.heap(), batch, input.origin);
    return true;
  }
  Value count;
  Value fill;
  Value waiting;  // read already, but belongs to the next batch
};

struct Slices final : Generator {
  Slices(Sandbox& s, const Value& i, const Value& c, const Value& f)
      : Generator(s, i), count(c), fill(f) {}
  bool open() override {
    items = new_list(sandbox.heap(), to_vector(sandbox, input)).list;
    slices = to_int(count, "slice");
    if (slices == 0) fail("slice: into zero slices");
    return Generator::open();
  }
  bool produce(Value& out) override {
    if (position >= slices) return false;
    const int64_t each = items->size / slices;
    const int64_t longer = items->size % slices;
    const int64_t start = position * each + std::min(position, longer);
    const int64_t end = start + each + (position < longer ? 1 : 0);
    std::vector<Value> slice(items->begin() + start, items->begin() + end);
    if (!fill.missing() && !fill.is(Kind::kNone) && position >= longer) slice.push_back(fill);
    position += 1;
    out = new_list(sandbox.heap(), slice, input.origin);
    return true;
  }
  Value count;
  Value fill;
  const List* items = nullptr;
  int64_t slices = 0;
  int64_t position = 0;
};

Value map(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  return Value(static_cast<Iterator*>(sandbox.heap().make<Map>(sandbox, self, arguments)));
}

template <bool wanted, bool by_attribute>
Value select(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  return Value(static_cast<Iterator*>(
      sandbox.heap().make<Select>(sandbox, self, arguments, wanted, by_attribute)));
}

Value unique(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"}, 0);
  Getter get = make_getter(sandbox, bound[1]);
  get.fold_case = !(bound.has(0) && is_true(sandbox, bound[0]));
  return Value(static_cast<Iterator*>(sandbox.heap().make<Unique>(sandbox, self, get)));
}

Value items(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("items", arguments, {}, 0);
  return Value(static_cast<Iterator*>(sandbox.heap().make<Items>(sandbox, self)));
}

Value batch(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  return Value(
      static_cast<Iterator*>(sandbox.heap().make<Batch>(sandbox, self, bound[0], bound[1])));
}

Value slice(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  return Value(
      static_cast<Iterator*>(sandbox.heap().make<Slices>(sandbox, self, bound[0], bound[1])));
}

// A string backwards is a string; of what cannot be walked backwards a list is made first.
Value reverse(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("reverse", arguments, {}, 0);
  if (self.is(Kind::kStr)) {
    return get_slice(sandbox, self, Value(), Value(), Value(int64_t{-1}));
  }
  if (Iterator* backwards = iterate_backwards(sandbox, self)) return Value(backwards);
  std::vector<Value> items = to_vector(sandbox, self);
  std::reverse(items.begin(), items.end());
  return new_list(sandbox.heap(), items);
}

constexpr Native kFilters[] = {
    {"batch", batch},
    {"items", items},
    {"map", map},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"slice", slice},
    {"unique", unique},
};

}  // namespace

std::span<const Native> lazy_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
