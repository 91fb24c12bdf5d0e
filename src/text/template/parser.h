// Tokens to a tree, by recursive descent: one function per level of precedence (parser_expr.cc) and
// one per tag (parser_stmt.cc). The grammar is Jinja2's, with its `loopcontrols` extension and the
// `generation` tag of Hugging Face.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace tinyvllm::jinja {

class Parser {
 public:
  // Literals of the tree are kept in `heap`.
  Parser(std::vector<Token> tokens, const Limits& limits, Heap& heap)
      : tokens_(std::move(tokens)), limits_(limits), heap_(heap) {}

  Body parse();  // throws TemplateError

 private:
  // -- parser.cc: the token stream
  const Token& current() const { return tokens_[next_]; }
  const Token& ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  bool at(Tok kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return at(Tok::kName) && current().text == name; }
  const Token& take();
  const Token& expect(Tok kind);
  void expect_name(std::string_view name);
  bool take_if(Tok kind);
  bool take_name_if(std::string_view name);
  template <class... Parts>
  [[noreturn]] void fail_at(const Token& token, const Parts&... parts) const {
    throw TemplateError{str_cat(parts...), token.at};
  }

  // Nodes. `start` is the node's first token; finish() marks its end and attach() keeps the limit
  // on how deep a tree may grow.
  template <class Node, class... Args>
  std::unique_ptr<Node> begin(const Token& start, Args&&... args) const {
    auto node = std::make_unique<Node>(std::forward<Args>(args)...);
    node->at = start.at;
    if constexpr (std::is_base_of_v<Expr, Node>) node->begin = start.begin;
    return node;
  }
  ExprPtr finish(ExprPtr node) const;
  void attach(Expr& parent, ExprPtr& place, ExprPtr child) const;
  ExprPtr literal(const Token& token, const Value& value) const;
  class Level;  // one more nested call, while it lives

  // -- parser_stmt.cc
  Body parse_until(std::initializer_list<std::string_view> ends);
  Body parse_body(std::initializer_list<std::string_view> ends, bool drop_end);
  StmtPtr parse_statement();
  StmtPtr parse_for();
  StmtPtr parse_if();
  StmtPtr parse_set();
  StmtPtr parse_with();
  StmtPtr parse_autoescape();
  StmtPtr parse_macro();
  StmtPtr parse_call_block();
  StmtPtr parse_generation();
  StmtPtr parse_filter_block();
  StmtPtr parse_block();
  StmtPtr parse_print();
  StmtPtr parse_loop_control();
  StmtPtr parse_refused();
  void parse_refused_names(Refused& refused);
  void parse_parameters(MacroBody& macro);

  // -- parser_expr.cc
  enum TupleMode { kFull, kNoConditional, kTarget, kTargetOrField };
  ExprPtr parse_tuple(TupleMode mode = kFull, std::string_view end_name = {},
                      bool in_parentheses = false);
  ExprPtr parse_target(bool fields, Name::Use use, std::string_view end_name = {});
  std::unique_ptr<Name> parse_target_name(Name::Use use);
  void make_target(Expr& target, Name::Use use, const Token& start) const;
  ExprPtr parse_expression(bool conditional = true);
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  std::optional<Op> take_comparison();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool filters = true);
  ExprPtr parse_primary(bool fields = false);
  ExprPtr parse_name(bool fields);
  ExprPtr parse_string();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters_and_tests(ExprPtr node);
  ExprPtr parse_attribute(ExprPtr object);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_slice(ExprPtr object, ExprPtr start, const Token& first);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr operand, bool after_pipe);
  ExprPtr parse_test(ExprPtr operand);
  std::string parse_dotted_name();
  void parse_arguments(Expr& parent, CallArguments& arguments);
  ExprPtr binary(ExprKind kind, Op op, ExprPtr left, ExprPtr right) const;

  std::vector<Token> tokens_;
  const Limits& limits_;
  Heap& heap_;
  size_t next_ = 0;
  int level_ = 0;
  int loops_ = 0;  // surrounding loops of the current function: where break and continue may stand
};

// One more level of nested calls, while it lives.
class Parser::Level {
 public:
  explicit Level(Parser& parser) : parser_(parser) {
    if (++parser_.level_ > parser_.limits_.syntax_depth) {
      parser_.fail_at(parser_.current(), "nested deeper than ", parser_.limits_.syntax_depth,
                      " levels");
    }
  }
  ~Level() { parser_.level_ -= 1; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Parser& parser_;
};

}  // namespace tinyvllm::jinja
