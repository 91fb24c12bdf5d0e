// What is left of HTML in templates that write prompts: the filters `escape` and `safe`, and
// strings declared safe, which escape whatever is joined to them.
#pragma once

#include "text/template/value.h"

namespace tinyvllm::jinja {

// & < > ' " as entities. Text that is already markup comes back as it is.
const Str* escape_html(Sandbox& sandbox, const Str& text);

}  // namespace tinyvllm::jinja
