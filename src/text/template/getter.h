// How filters look into the items they are given: attribute="address.city", and case ignored.
#pragma once

#include "text/template/value.h"

namespace tinyvllm::jinja {

struct Getter {
  const List* path = nullptr;  // names and indices; null: the item itself
  Value fallback;              // for what is undefined, unless missing or none
  bool fold_case = false;      // strings in lower case

  Value operator()(Sandbox& sandbox, const Value& item) const;
};

// `attribute`: none or kMissing for the item itself, "a.b.0", or one index.
Getter make_getter(Sandbox& sandbox, const Value& attribute);

}  // namespace tinyvllm::jinja
