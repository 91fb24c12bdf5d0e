// JSON text to values, as Python's json.loads makes them: objects keep their order, 1 is an int and
// 1.0 a float.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

// All characters get the given origin. The values live in `heap`; `json` may be freed.
Result<Value> parse_json(Heap& heap, std::string_view json, Origin origin);

}  // namespace tinyvllm::jinja
