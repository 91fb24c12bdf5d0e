#include "text/template/parser.h"

namespace tinyvllm::jinja {

Body Parser::parse() {
  Body body = parse_until({});
  return body;
}

const Token& Parser::take() {
  const Token& token = current();
  if (token.kind != Tok::kEnd) next_ += 1;
  return token;
}

const Token& Parser::expect(Tok kind) {
  if (!at(kind)) {
    fail_at(current(), "expected '", describe(kind), "', found '", describe(current()), "'");
  }
  return take();
}

void Parser::expect_name(std::string_view name) {
  if (!take_name_if(name)) {
    fail_at(current(), "expected '", name, "', found '", describe(current()), "'");
  }
}

bool Parser::take_if(Tok kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool Parser::take_name_if(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}

ExprPtr Parser::finish(ExprPtr node) const {
  node->end = tokens_[next_ == 0 ? 0 : next_ - 1].end;
  return node;
}

void Parser::attach(Expr& parent, ExprPtr& place, ExprPtr child) const {
  if (child->depth >= limits_.syntax_depth) {
    throw TemplateError{str_cat("nested deeper than ", limits_.syntax_depth, " levels"), child->at};
  }
  parent.depth = std::max<uint16_t>(parent.depth, static_cast<uint16_t>(child->depth + 1));
  place = std::move(child);
}

ExprPtr Parser::literal(const Token& token, const Value& value) const {
  auto node = begin<Literal>(token);
  node->value = value;
  node->end = token.end;
  return node;
}

}  // namespace tinyvllm::jinja
