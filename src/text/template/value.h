// The values that templates compute with: Python's, as far as a chat template meets them. A Value
// is 16 bytes and copied freely; what it points to lives in a Heap, and all of it but namespaces,
// cyclers and the like is immutable once made.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/template/marked_text.h"
#include "text/template/sandbox.h"

namespace tinyvllm::jinja {

enum class Kind : uint8_t {
  kMissing,  // no value at all: an unset variable, an argument not given. Templates never see it
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kStr,
  kList,
  kTuple,
  kDict,
  kView,  // dict.keys(), .values(), .items()
  kRange,
  kIterator,  // what lazy filters return: may be walked once
  kNamespace,
  kLoop,  // the `loop` variable
  kMacro,
  kFunction,  // a built-in global
  kMethod,    // a built-in method together with its object
  kCycler,
  kJoiner,
};

struct Undefined;
struct List;
struct Dict;
struct View;
struct Range;
struct Iterator;
struct Loop;
struct Macro;
struct Native;
struct Method;
struct Cycler;
struct Joiner;

struct Value {
  Kind kind = Kind::kMissing;
  // Where a value that is no string came from; a Str marks its own characters. A list or dict from
  // a message lends this to the brackets and commas it is printed with.
  Origin origin = Origin::kTemplate;
  union {
    bool boolean;
    int64_t integer = 0;
    double number;
    const Undefined* undefined;
    const Str* str;
    const List* list;  // tuples too
    Dict* dict;        // namespaces too
    const View* view;
    const Range* range;
    Iterator* iterator;
    Loop* loop;
    const Macro* macro;
    const Native* function;
    const Method* method;
    Cycler* cycler;
    Joiner* joiner;
  };

  Value() = default;
  explicit Value(bool b, Origin o = Origin::kTemplate) : kind(Kind::kBool), origin(o), boolean(b) {}
  explicit Value(int64_t i, Origin o = Origin::kTemplate)
      : kind(Kind::kInt), origin(o), integer(i) {}
  explicit Value(double d, Origin o = Origin::kTemplate)
      : kind(Kind::kFloat), origin(o), number(d) {}
  explicit Value(const Str* s) : kind(Kind::kStr), str(s) {}
  explicit Value(const Undefined* u) : kind(Kind::kUndefined), undefined(u) {}
  explicit Value(const View* v, Origin o) : kind(Kind::kView), origin(o), view(v) {}
  explicit Value(const Range* r) : kind(Kind::kRange), range(r) {}
  explicit Value(Iterator* i) : kind(Kind::kIterator), iterator(i) {}
  explicit Value(Loop* l) : kind(Kind::kLoop), loop(l) {}
  explicit Value(const Macro* m) : kind(Kind::kMacro), macro(m) {}
  explicit Value(const Native* f) : kind(Kind::kFunction), function(f) {}
  explicit Value(const Method* m) : kind(Kind::kMethod), method(m) {}
  explicit Value(Cycler* c) : kind(Kind::kCycler), cycler(c) {}
  explicit Value(Joiner* j) : kind(Kind::kJoiner), joiner(j) {}

  static Value none(Origin origin = Origin::kTemplate);
  static Value of_list(const List* list, Origin origin = Origin::kTemplate);
  static Value of_tuple(const List* list, Origin origin = Origin::kTemplate);
  static Value of_dict(Dict* dict, Origin origin = Origin::kTemplate);
  static Value of_namespace(Dict* dict);

  bool is(Kind k) const { return kind == k; }
  bool missing() const { return kind == Kind::kMissing; }
  bool is_int() const { return kind == Kind::kInt || kind == Kind::kBool; }  // as Python has it
  bool is_number() const { return is_int() || kind == Kind::kFloat; }
  int64_t as_int() const { return kind == Kind::kBool ? boolean : integer; }
  double as_float() const { return kind == Kind::kFloat ? number : static_cast<double>(as_int()); }
  // Whose characters it prints, if it is printed as one piece.
  Origin text_origin() const { return kind == Kind::kStr ? str->any_origin() : origin; }
};
static_assert(sizeof(Value) == 16);

// The result of looking for what is not there. It prints as nothing, and using it any further fails
// with what is said here.
struct Undefined {
  std::string_view hint;  // the whole message, if there is one
  Value name;             // what was looked for
  Value object;           // where; kMissing when it was a variable
};

// How many lists, tuples and dicts may lie inside each other. Walking a value recursively, to
// print, compare or hash it, is safe because none can be nested deeper.
constexpr int kMostNesting = 400;

struct List {
  const Value* items = nullptr;
  uint32_t size = 0;
  uint16_t depth = 1;  // levels of nesting, this one included
  bool group = false;  // from the filter `groupby`: item 0 is also .grouper, item 1 .list

  const Value* begin() const { return items; }
  const Value* end() const { return items + size; }
};

// Keeps insertion order; a hash index from nine entries on. Keys that are equal in Python are equal
// here: 1, 1.0 and true are one key.
struct Dict {
  struct Entry {
    Value key;
    Value value;
  };

  Entry* entries = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
  uint32_t* index = nullptr;  // positions + 1, open addressing, 0 is free
  uint32_t index_size = 0;    // a power of two, more than `capacity`
  uint16_t depth = 1;

  const Entry* begin() const { return entries; }
  const Entry* end() const { return entries + size; }
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;  // `key` must be hashable
  void set(Heap& heap, const Value& key, const Value& value);

 private:
  uint32_t locate(const Value& key, uint64_t hash) const;
  void grow(Heap& heap);
};

struct View {
  enum class Part : uint8_t { kKeys, kValues, kItems };
  const Dict* dict;
  Part part;
};

struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t size = 0;

  int64_t at(int64_t i) const { return start + i * step; }
};

// A walk over values. Lives in the heap, so derived types hold only what needs no destructor.
struct Iterator {
  virtual bool next(Value& out) = 0;  // false: no more

 protected:
  ~Iterator() = default;
};

struct Cycler {
  const List* items;
  uint32_t position = 0;
};

struct Joiner {
  Value separator;
  bool used = false;
};

bool is_hashable(const Value& value);
uint64_t hash_value(const Value& value);        // equal values hash equal
bool same_key(const Value& a, const Value& b);  // equality of hashable values

// Lists and tuples are made by these alone: they keep the limit on nesting.
Value new_list(Heap& heap, const std::vector<Value>& items, Origin origin = Origin::kTemplate);
Value new_tuple(Heap& heap, const std::vector<Value>& items, Origin origin = Origin::kTemplate);
Value new_text(Heap& heap, std::string_view text, Origin origin = Origin::kTemplate);

// "dict", "str", "NoneType": Python's name for the type.
std::string_view type_name(const Value& value);

}  // namespace tinyvllm::jinja
