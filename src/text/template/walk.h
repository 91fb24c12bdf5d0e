// Visits every name in a part of the tree, in the order in which Jinja2 does; blocks are not
// entered.
#pragma once

#include <functional>

#include "text/template/ast.h"

namespace tinyvllm::jinja {

using NameVisitor = std::function<void(const Name&)>;

void walk_names(const Expr* expr, const NameVisitor& visit);  // null is fine
void walk_names(const Stmt& stmt, const NameVisitor& visit);
void walk_names(const Body& body, const NameVisitor& visit);

}  // namespace tinyvllm::jinja
