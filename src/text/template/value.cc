#include "text/template/value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

namespace tinyvllm::jinja {
namespace {

constexpr uint32_t kIndexFrom = 9;  // entries; below, comparing beats hashing

uint64_t mix(uint64_t hash, uint64_t more) {
  hash ^= more + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  return hash;
}

// SipHash-1-3 under a key drawn once per process: clients choose the keys of the objects they send,
// and must not be able to choose them so that all collide.
struct SipHash {
  uint64_t a, b, c, d;

  void round() {
    a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
    c += d, d = std::rotl(d, 16) ^ c;
    a += d, d = std::rotl(d, 21) ^ a;
    c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
  }
  void add(uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

uint64_t hash_bytes(std::string_view bytes) {
  static const std::array<uint64_t, 2> key = [] {
    std::random_device random;
    const auto word = [&random] { return uint64_t{random()} << 32 | random(); };
    return std::array<uint64_t, 2>{word(), word()};
  }();
  SipHash state{key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
  const uint64_t length = uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state.add(word);
  }
  uint64_t tail = length;
  if (!bytes.empty()) std::memcpy(&tail, bytes.data(), bytes.size());
  state.add(tail | length);
  state.c ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

uint16_t deeper(const Value& inner) {
  const int depth = inner.is(Kind::kList) || inner.is(Kind::kTuple) ? inner.list->depth
                    : inner.is(Kind::kDict)                         ? inner.dict->depth
                    : inner.is(Kind::kView)                         ? inner.view->dict->depth
                                                                    : 0;
  if (depth >= kMostNesting) fail("values nested deeper than ", kMostNesting, " levels");
  return static_cast<uint16_t>(depth + 1);
}

bool fits_int64(double number) { return number >= -0x1p63 && number < 0x1p63; }

// Exact, unlike a comparison after conversion to double.
bool int_equals_float(int64_t integer, double number) {
  return fits_int64(number) && number == std::floor(number) &&
         static_cast<int64_t>(number) == integer;
}

uint64_t hash_number(const Value& value) {
  if (value.is_int()) return std::hash<int64_t>{}(value.as_int());
  const double number = value.number;
  if (fits_int64(number) && number == std::floor(number)) {
    return std::hash<int64_t>{}(static_cast<int64_t>(number));
  }
  return std::hash<double>{}(number);
}

}  // namespace

Value Value::none(Origin origin) {
  Value value;
  value.kind = Kind::kNone;
  value.origin = origin;
  return value;
}

Value Value::of_list(const List* list, Origin origin) {
  Value value;
  value.kind = Kind::kList;
  value.origin = origin;
  value.list = list;
  return value;
}

Value Value::of_tuple(const List* list, Origin origin) {
  Value value = of_list(list, origin);
  value.kind = Kind::kTuple;
  return value;
}

Value Value::of_dict(Dict* dict, Origin origin) {
  Value value;
  value.kind = Kind::kDict;
  value.origin = origin;
  value.dict = dict;
  return value;
}

Value Value::of_namespace(Dict* dict) {
  Value value = of_dict(dict);
  value.kind = Kind::kNamespace;
  return value;
}

bool is_hashable(const Value& value) {
  switch (value.kind) {
    case Kind::kList:
    case Kind::kDict:
      return false;
    case Kind::kView:
      return value.view->part == View::Part::kValues;
    case Kind::kTuple:
      return std::all_of(value.list->begin(), value.list->end(), is_hashable);
    default:
      return true;
  }
}

uint64_t hash_value(const Value& value) {
  switch (value.kind) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return hash_number(value);
    case Kind::kStr:
      return hash_bytes(value.str->view());
    case Kind::kTuple: {
      uint64_t hash = value.list->size;
      for (const Value& item : *value.list) hash = mix(hash, hash_value(item));
      return hash;
    }
    case Kind::kRange:
      return mix(1, static_cast<uint64_t>(value.range->size));
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return static_cast<uint64_t>(value.kind);
    default:
      return std::hash<const void*>{}(value.dict);
  }
}

bool same_key(const Value& a, const Value& b) {
  if (a.is(Kind::kStr)) return b.is(Kind::kStr) && a.str->view() == b.str->view();
  if (a.is_int() && b.is_int()) return a.as_int() == b.as_int();
  if (a.is_int() && b.is(Kind::kFloat)) return int_equals_float(a.as_int(), b.number);
  if (a.is(Kind::kFloat) && b.is_int()) return int_equals_float(b.as_int(), a.number);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kFloat:
      return a.number == b.number;
    case Kind::kTuple:
      return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(), same_key);
    case Kind::kRange: {
      const Range& left = *a.range;
      const Range& right = *b.range;
      return left.size == right.size && (left.size == 0 || left.start == right.start) &&
             (left.size <= 1 || left.step == right.step);
    }
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    default:
      return a.dict == b.dict;
  }
}

const Value* Dict::find(std::string_view key) const {
  if (index == nullptr) {
    for (uint32_t i = 0; i < size; ++i) {
      const Value& candidate = entries[i].key;
      if (candidate.is(Kind::kStr) && candidate.str->view() == key) return &entries[i].value;
    }
    return nullptr;
  }
  Str name{key.data(), static_cast<uint32_t>(key.size())};
  return find(Value(&name));
}

const Value* Dict::find(const Value& key) const {
  const uint32_t position = locate(key, index == nullptr ? 0 : hash_value(key));
  return position == size ? nullptr : &entries[position].value;
}

// The entry's position, or `size`.
uint32_t Dict::locate(const Value& key, uint64_t hash) const {
  if (index == nullptr) {
    uint32_t i = 0;
    while (i < size && !same_key(entries[i].key, key)) i += 1;
    return i;
  }
  for (uint64_t slot = hash;; ++slot) {
    const uint32_t position = index[slot & (index_size - 1)];
    if (position == 0) return size;
    if (same_key(entries[position - 1].key, key)) return position - 1;
  }
}

void Dict::set(Heap& heap, const Value& key, const Value& value) {
  depth = std::max({depth, deeper(key), deeper(value)});
  const uint32_t position = locate(key, index == nullptr ? 0 : hash_value(key));
  if (position < size) {
    entries[position].value = value;
    return;
  }
  if (size == capacity) grow(heap);
  entries[size] = {key, value};
  size += 1;
  if (index == nullptr) return;
  uint64_t slot = hash_value(key);
  while (index[slot & (index_size - 1)] != 0) slot += 1;
  index[slot & (index_size - 1)] = size;
}

void Dict::grow(Heap& heap) {
  capacity = std::max<uint32_t>(4, capacity * 2);
  Entry* larger = heap.array<Entry>(capacity);
  std::copy(begin(), end(), larger);
  entries = larger;
  if (capacity < kIndexFrom) return;
  index_size = capacity * 2;
  index = heap.array<uint32_t>(index_size);
  std::fill(index, index + index_size, 0u);
  for (uint32_t i = 0; i < size; ++i) {
    uint64_t slot = hash_value(entries[i].key);
    while (index[slot & (index_size - 1)] != 0) slot += 1;
    index[slot & (index_size - 1)] = i + 1;
  }
}

Value new_list(Heap& heap, const std::vector<Value>& items, Origin origin) {
  Value* copy = heap.array<Value>(items.size());
  std::copy(items.begin(), items.end(), copy);
  List* list = heap.make<List>(List{copy, static_cast<uint32_t>(items.size())});
  for (const Value& item : items) list->depth = std::max(list->depth, deeper(item));
  return Value::of_list(list, origin);
}

Value new_tuple(Heap& heap, const std::vector<Value>& items, Origin origin) {
  return Value::of_tuple(new_list(heap, items).list, origin);
}

Value new_text(Heap& heap, std::string_view text, Origin origin) {
  return Value(make_str(heap, text, origin));
}

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
      return "missing";
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kStr:
      return value.str->markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      return value.view->part == View::Part::kKeys     ? "dict_keys"
             : value.view->part == View::Part::kValues ? "dict_values"
                                                       : "dict_items";
    case Kind::kRange:
      return "range";
    case Kind::kIterator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

}  // namespace tinyvllm::jinja
