// The `loop` variable of a for loop, which is also what walks over the loop's items: it may have to
// look ahead for loop.last and loop.nextitem, or read everything for loop.length.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/template/value.h"

namespace tinyvllm::jinja {

struct Loop {
  Sandbox* sandbox = nullptr;
  Iterator* source = nullptr;
  Value iterable;
  int64_t index0 = -1;
  int64_t total = -1;  // -1: not known yet
  Value after;         // the next item, if it was looked at; else kMissing
  Value current;
  Value before;
  Value last_changed;  // a tuple, after the first loop.changed()

  bool advance();  // to the next item
  const Value& peek();
  int64_t length();
};

Loop* make_loop(Sandbox& sandbox, const Value& iterable, Iterator* source);

// loop.index, loop.last, …: kMissing when there is no such property.
Value loop_property(Sandbox& sandbox, Loop& loop, std::string_view name);

}  // namespace tinyvllm::jinja
