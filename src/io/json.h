// JSON for io's own .cc files: parsing with limits, and a JSON object as flat metadata.
#pragma once

#include <simdjson.h>
#include <string_view>

#include "base/result.h"
#include "io/metadata.h"

namespace tinyvllm {

// The parser owns what the element refers to and must stay where it is.
Result<simdjson::dom::element> parse_json(simdjson::dom::parser& parser, std::string_view text);

const char* json_kind(const simdjson::dom::element& element);  // "a string", "an object", …

// A JSON object flattened: members of objects by dotted path, lists of equal scalars as arrays,
// other lists by index ("layers.0.type"), nulls left out.
Result<Metadata> read_json_metadata(std::string_view text);

}  // namespace tinyvllm
