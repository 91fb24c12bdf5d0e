// Decides, before anything runs, which variable every name means, and finds the filters and tests.
//
// Jinja2 compiles templates to Python functions, and its scoping rules are what comes out of that:
// a loop, macro, block or `with` opens a scope; a name assigned in a scope starts out as the
// variable of the same name further out and changes only the scope's own; `if` opens none; a macro
// sees the variables around it as they are when it is called. A variable lives in a slot of the
// function (the template itself, a macro, a loop's filter) that it belongs to.
#pragma once

#include "text/template/ast.h"

namespace tinyvllm::jinja {

struct RootScope {
  Scope scope;
  uint32_t slots = 0;
};

// Throws TemplateError for what can be seen to be wrong: an unknown filter, an assignment to
// `loop`.
RootScope resolve_scopes(Body& body, Sandbox& sandbox);

}  // namespace tinyvllm::jinja
