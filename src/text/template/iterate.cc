#include "text/template/iterate.h"

#include "base/utf8.h"
#include "text/template/operators.h"

namespace tinyvllm::jinja {
namespace {

struct ListWalk final : Iterator {
  ListWalk(Sandbox& s, const List& list, bool backwards)
      : sandbox(s),
        at(backwards ? list.end() : list.begin()),
        stop(backwards ? list.begin() : list.end()),
        step(backwards ? -1 : 1) {}
  bool next(Value& out) override {
    if (at == stop) return false;
    sandbox.charge(1);
    out = step > 0 ? *at : at[-1];
    at += step;
    return true;
  }
  Sandbox& sandbox;
  const Value* at;
  const Value* stop;
  int step;
};

// The characters of markup are no markup.
Value plain_char(Sandbox& sandbox, const Str& text, uint32_t offset) {
  return Value(with_markup(sandbox.heap(), *char_at(sandbox, text, offset).str, false));
}

struct TextWalk final : Iterator {
  TextWalk(Sandbox& s, const Str& t) : sandbox(s), text(t) {}
  bool next(Value& out) override {
    if (at == text.size) return false;
    sandbox.charge(1);
    out = plain_char(sandbox, text, at);
    at += out.str->size;
    return true;
  }
  Sandbox& sandbox;
  const Str& text;
  uint32_t at = 0;
};

struct TextWalkBackwards final : Iterator {
  TextWalkBackwards(Sandbox& s, const Str& t) : sandbox(s), text(t), at(t.size) {}
  bool next(Value& out) override {
    if (at == 0) return false;
    sandbox.charge(1);
    do {
      at -= 1;
    } while ((static_cast<unsigned char>(text.data[at]) & 0xC0) == 0x80);
    out = plain_char(sandbox, text, at);
    return true;
  }
  Sandbox& sandbox;
  const Str& text;
  uint32_t at;
};

struct DictWalk final : Iterator {
  DictWalk(Sandbox& s, const Dict& d, View::Part p, Origin o, bool b)
      : sandbox(s), dict(d), part(p), origin(o), backwards(b) {}
  bool next(Value& out) override {
    if (position >= dict.size) return false;
    sandbox.charge(1);
    const Dict::Entry& entry = dict.entries[backwards ? dict.size - 1 - position : position];
    position += 1;
    out = part == View::Part::kKeys ? entry.key
          : part == View::Part::kValues
              ? entry.value
              : new_tuple(sandbox.heap(), {entry.key, entry.value}, origin);
    return true;
  }
  Sandbox& sandbox;
  const Dict& dict;
  View::Part part;
  Origin origin;
  bool backwards;
  uint32_t position = 0;
};

struct RangeWalk final : Iterator {
  RangeWalk(Sandbox& s, const Range& r, bool b) : sandbox(s), range(r), backwards(b) {}
  bool next(Value& out) override {
    if (position >= range.size) return false;
    sandbox.charge(1);
    out = Value(range.at(backwards ? range.size - 1 - position : position));
    position += 1;
    return true;
  }
  Sandbox& sandbox;
  const Range& range;
  bool backwards;
  int64_t position = 0;
};

struct NoWalk final : Iterator {
  bool next(Value&) override { return false; }
};

}  // namespace

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kStr:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kIterator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Iterator* iterate(Sandbox& sandbox, const Value& value) {
  Heap& heap = sandbox.heap();
  switch (value.kind) {
    case Kind::kUndefined:
      return heap.make<NoWalk>();
    case Kind::kStr:
      return heap.make<TextWalk>(sandbox, *value.str);
    case Kind::kList:
    case Kind::kTuple:
      return heap.make<ListWalk>(sandbox, *value.list, false);
    case Kind::kDict:
      return heap.make<DictWalk>(sandbox, *value.dict, View::Part::kKeys, value.origin, false);
    case Kind::kView:
      return heap.make<DictWalk>(sandbox, *value.view->dict, value.view->part, value.origin, false);
    case Kind::kRange:
      return heap.make<RangeWalk>(sandbox, *value.range, false);
    case Kind::kIterator:
      return value.iterator;
    default:
      fail("a value of type '", type_name(value), "' cannot be iterated over");
  }
}

Iterator* iterate_backwards(Sandbox& sandbox, const Value& value) {
  Heap& heap = sandbox.heap();
  switch (value.kind) {
    case Kind::kUndefined:
      return heap.make<NoWalk>();
    case Kind::kStr:
      return heap.make<TextWalkBackwards>(sandbox, *value.str);
    case Kind::kList:
    case Kind::kTuple:
      return heap.make<ListWalk>(sandbox, *value.list, true);
    case Kind::kDict:
      return heap.make<DictWalk>(sandbox, *value.dict, View::Part::kKeys, value.origin, true);
    case Kind::kView:
      return heap.make<DictWalk>(sandbox, *value.view->dict, value.view->part, value.origin, true);
    case Kind::kRange:
      return heap.make<RangeWalk>(sandbox, *value.range, true);
    default:
      return nullptr;
  }
}

std::vector<Value> to_vector(Sandbox& sandbox, const Value& value) {
  std::vector<Value> items;
  if (value.is(Kind::kList) || value.is(Kind::kTuple)) {
    sandbox.charge(value.list->size);
    items.assign(value.list->begin(), value.list->end());
    return items;
  }
  Iterator* walk = iterate(sandbox, value);
  for (Value item; walk->next(item);) items.push_back(item);
  return items;
}

std::vector<Value> unpack(Sandbox& sandbox, const Value& value, size_t count) {
  std::vector<Value> items;
  Iterator* walk = iterate(sandbox, value);
  for (Value item; walk->next(item);) {
    if (items.size() == count) fail("too many values to unpack, expected ", count);
    items.push_back(item);
  }
  if (items.size() < count) {
    fail("not enough values to unpack, expected ", count, ", found ", items.size());
  }
  return items;
}

Value char_at(Sandbox& sandbox, const Str& text, uint32_t offset) {
  return Value(substr(sandbox.heap(), text, offset, offset + text.char_bytes(offset)));
}

}  // namespace tinyvllm::jinja
