// Tags. A function here is called with its tag's name as the current token and returns with the
// block end as the current token.
#include <algorithm>

#include "text/template/parser.h"

namespace tinyvllm::jinja {
namespace {

// A function's body is a world of its own for break and continue.
class LoopCount {
 public:
  LoopCount(int& loops, int value) : loops_(loops), saved_(loops) { loops_ = value; }
  ~LoopCount() { loops_ = saved_; }
  LoopCount(const LoopCount&) = delete;
  LoopCount& operator=(const LoopCount&) = delete;

 private:
  int& loops_;
  const int saved_;
};

}  // namespace

// Text, expressions and tags up to one of the tags in `ends`, whose name is then the current token;
// with no `ends`, up to the end of the template.
Body Parser::parse_until(std::initializer_list<std::string_view> ends) {
  const Level level(*this);
  Body body;
  Output* output = nullptr;
  const auto add = [&](const Token& token, ExprPtr item) {
    if (output == nullptr) {
      body.push_back(begin<Output>(token));
      output = static_cast<Output*>(body.back().get());
    }
    output->items.push_back(std::move(item));
  };
  while (!at(Tok::kEnd)) {
    const Token& token = take();
    if (token.kind == Tok::kData) {
      add(token, literal(token, new_text(heap_, token.text)));
    } else if (token.kind == Tok::kVariableBegin) {
      add(token, parse_tuple());
      expect(Tok::kVariableEnd);
    } else {
      output = nullptr;
      const auto is_current = [this](std::string_view end) { return at_name(end); };
      if (std::any_of(ends.begin(), ends.end(), is_current)) return body;
      body.push_back(parse_statement());
      expect(Tok::kBlockEnd);
    }
  }
  if (ends.size() != 0) {
    fail_at(current(), "unexpected end of template, expected '", *(ends.end() - 1), "'");
  }
  return body;
}

// The rest of an opening tag, and what stands between it and its end.
Body Parser::parse_body(std::initializer_list<std::string_view> ends, bool drop_end) {
  take_if(Tok::kColon);
  expect(Tok::kBlockEnd);
  Body body = parse_until(ends);
  if (drop_end) take();
  return body;
}

StmtPtr Parser::parse_statement() {
  struct Tag {
    std::string_view name;
    StmtPtr (Parser::*parse)();
  };
  static constexpr Tag kTags[] = {
      {"for", &Parser::parse_for},
      {"if", &Parser::parse_if},
      {"set", &Parser::parse_set},
      {"with", &Parser::parse_with},
      {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block},
      {"filter", &Parser::parse_filter_block},
      {"generation", &Parser::parse_generation},
      {"break", &Parser::parse_loop_control},
      {"continue", &Parser::parse_loop_control},
      {"print", &Parser::parse_print},
      {"block", &Parser::parse_block},
      {"autoescape", &Parser::parse_autoescape},
      {"include", &Parser::parse_refused},
      {"import", &Parser::parse_refused},
      {"from", &Parser::parse_refused},
      {"extends", &Parser::parse_refused},
  };
  const Token& name = current();
  if (name.kind != Tok::kName) fail_at(name, "expected the name of a tag");
  for (const Tag& tag : kTags) {
    if (name.text == tag.name) return (this->*tag.parse)();
  }
  fail_at(name, "unknown tag '", name.text, "'");
}

StmtPtr Parser::parse_for() {
  auto node = begin<For>(take());
  node->target = parse_target(/*fields=*/false, Name::Use::kStore, "in");
  expect_name("in");
  node->iterable = parse_tuple(kNoConditional, "recursive");
  if (take_name_if("if")) node->test = parse_expression();
  if (at_name("recursive")) fail_at(current(), "recursive loops are refused");
  {
    const LoopCount loops(loops_, loops_ + 1);
    node->body = parse_body({"else", "endfor"}, /*drop_end=*/false);
  }
  if (take().text == "else") node->otherwise = parse_body({"endfor"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_if() {
  auto node = begin<If>(current());
  do {
    take();
    If::Branch& branch = node->branches.emplace_back();
    branch.test = parse_tuple(kNoConditional);
    branch.body = parse_body({"elif", "else", "endif"}, /*drop_end=*/false);
  } while (at_name("elif"));
  if (take().text == "else") node->otherwise = parse_body({"endif"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_set() {
  const Token& tag = take();
  ExprPtr target = parse_target(/*fields=*/true, Name::Use::kStore);
  if (take_if(Tok::kAssign)) {
    auto node = begin<Set>(tag);
    node->target = std::move(target);
    node->value = parse_tuple();
    return node;
  }
  auto node = begin<SetBlock>(tag);
  node->target = std::move(target);
  node->filter = parse_filter(nullptr, /*after_pipe=*/false);
  node->body = parse_body({"endset"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_with() {
  auto node = begin<With>(take());
  while (!at(Tok::kBlockEnd)) {
    if (!node->bindings.empty()) expect(Tok::kComma);
    auto& [target, value] = node->bindings.emplace_back();
    target = parse_target(/*fields=*/false, Name::Use::kParameter);
    expect(Tok::kAssign);
    value = parse_expression();
  }
  node->body = parse_body({"endwith"}, /*drop_end=*/true);
  return node;
}

// Escaping for HTML is never on, so all that is left of the tag is its scope.
StmtPtr Parser::parse_autoescape() {
  auto node = begin<With>(take());
  node->autoescape = parse_expression();
  node->body = parse_body({"endautoescape"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_macro() {
  const Token& tag = take();
  auto node = begin<MacroDef>(tag);
  node->macro.name = parse_target_name(Name::Use::kStore)->name;
  parse_parameters(node->macro);
  const LoopCount loops(loops_, 0);
  node->macro.body = parse_body({"endmacro"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_call_block() {
  const Token& tag = take();
  auto node = begin<CallBlock>(tag);
  if (at(Tok::kLeftParen)) parse_parameters(node->caller);
  ExprPtr call = parse_expression();
  if (call->kind != ExprKind::kCall) fail_at(tag, "expected a call after 'call'");
  node->call.reset(static_cast<Call*>(call.release()));
  for (const CallArguments::Named& named : node->call->arguments.named) {
    if (named.name == "caller") fail_at(tag, "argument 'caller' is given twice");
  }
  const LoopCount loops(loops_, 0);
  node->caller.body = parse_body({"endcall"}, /*drop_end=*/true);
  return node;
}

// What the model said. Rendered like a call block whose callee just calls back.
StmtPtr Parser::parse_generation() {
  auto node = begin<CallBlock>(take());
  const LoopCount loops(loops_, 0);
  node->caller.body = parse_body({"endgeneration"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_filter_block() {
  auto node = begin<FilterBlock>(take());
  node->filter = parse_filter(nullptr, /*after_pipe=*/true);
  node->body = parse_body({"endfilter"}, /*drop_end=*/true);
  return node;
}

StmtPtr Parser::parse_block() {
  auto node = begin<Block>(take());
  node->name = expect(Tok::kName).text;
  if (take_name_if("scoped")) fail_at(current(), "scoped blocks are refused");
  node->required = take_name_if("required");
  const LoopCount loops(loops_, 0);
  node->body = parse_body({"endblock"}, /*drop_end=*/true);
  take_name_if(node->name);
  return node;
}

StmtPtr Parser::parse_print() {
  auto node = begin<Output>(take());
  while (!at(Tok::kBlockEnd)) {
    if (!node->items.empty()) expect(Tok::kComma);
    node->items.push_back(parse_expression());
  }
  return node;
}

StmtPtr Parser::parse_loop_control() {
  const Token& tag = take();
  if (loops_ == 0) fail_at(tag, "'", tag.text, "' outside of a loop");
  if (tag.text == "break") return begin<Break>(tag);
  return begin<Continue>(tag);
}

StmtPtr Parser::parse_refused() {
  const Token& tag = take();
  auto node = begin<Refused>(tag);
  node->tag = tag.text;
  node->what = parse_expression();
  if (tag.text == "include" && at_name("ignore") && ahead().text == "missing") {
    take();
    take();
  }
  if (tag.text == "import") {
    expect_name("as");
    node->names.push_back(parse_target_name(Name::Use::kStore)->name);
  }
  if (tag.text == "from") {
    expect_name("import");
    parse_refused_names(*node);
  }
  if ((at_name("with") || at_name("without")) && ahead().text == "context") {
    take();
    take();
  }
  return node;
}

// name, name as alias, …
void Parser::parse_refused_names(Refused& refused) {
  do {
    if ((at_name("with") || at_name("without")) && ahead().text == "context") break;
    const Token& token = current();
    refused.names.push_back(parse_target_name(Name::Use::kStore)->name);
    if (refused.names.back()[0] == '_') fail_at(token, "names with a leading '_' are private");
    if (take_name_if("as")) refused.names.back() = parse_target_name(Name::Use::kStore)->name;
  } while (take_if(Tok::kComma));
}

void Parser::parse_parameters(MacroBody& macro) {
  expect(Tok::kLeftParen);
  bool defaults = false;
  while (!at(Tok::kRightParen)) {
    if (!macro.parameters.empty()) expect(Tok::kComma);
    const Token& token = current();
    std::unique_ptr<Name> name = parse_target_name(Name::Use::kParameter);
    for (const MacroBody::Parameter& other : macro.parameters) {
      if (other.name->name == name->name) fail_at(token, "parameter '", name->name, "' twice");
    }
    macro.explicit_caller |= name->name == "caller";
    MacroBody::Parameter& parameter = macro.parameters.emplace_back();
    parameter.name = std::move(name);
    if (take_if(Tok::kAssign)) {
      parameter.fallback = parse_expression();
      defaults = true;
    } else if (defaults) {
      fail_at(token, "a parameter without a default after one with");
    }
  }
  expect(Tok::kRightParen);
}

}  // namespace tinyvllm::jinja
