#include "text/template/template.h"

#include "base/utf8.h"
#include "text/template/interpreter.h"
#include "text/template/lexer.h"
#include "text/template/parser.h"
#include "text/template/scope.h"

namespace tinyvllm::jinja {

struct Template::Program {
  explicit Program(const Limits& limits) : sandbox(limits, {}) {}

  Sandbox sandbox;  // keeps the literals
  std::string source;
  std::vector<std::string> literals;  // template text and strings
  Body body;
  RootScope root;
};

namespace {

Error describe(const TemplateError& error) {
  if (error.at.line == 0) return tinyvllm::error("template: ", error.message);
  const std::string source =
      error.source.empty() ? "" : str_cat(", at '", printable(error.source), "'");
  return tinyvllm::error("template: line ", error.at.line, ", column ", error.at.column, source,
                         ": ", error.message);
}

}  // namespace

Template::Template(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Result<Template> Template::compile(std::string_view source, const Limits& limits) {
  if (source.size() > limits.source_bytes) {
    return error("template: ", source.size(), " bytes long, at most ", limits.source_bytes,
                 " are allowed");
  }
  if (!is_utf8(source)) return error("template: not valid UTF-8");
  auto program = std::make_unique<Program>(limits);
  program->source = normalize_newlines(source);
  try {
    std::vector<Token> tokens = tokenize(program->source);
    for (const Token& token : tokens) {
      if (token.kind == Tok::kData || token.kind == Tok::kString) {
        program->literals.push_back(token.text);
      }
    }
    program->body = Parser(std::move(tokens), limits, program->sandbox.heap()).parse();
    program->root = resolve_scopes(program->body, program->sandbox);
  } catch (const TemplateError& error) {
    return describe(error);
  }
  return Template(std::move(program));
}

Result<Rendered> Template::render(const Dict& variables, const Limits& limits,
                                  const std::tm& now) const {
  Sandbox sandbox(limits, now);
  TextBuilder output(sandbox.heap());
  try {
    Interpreter interpreter(sandbox, variables, program_->source, output);
    interpreter.run(program_->body, program_->root.scope, program_->root.slots);
  } catch (const TemplateError& error) {
    return describe(error);
  }
  Rendered rendered;
  rendered.first = output.first_origin();
  rendered.flips = output.flips();
  rendered.text = output.take_bytes();
  return rendered;
}

bool Template::mentions(std::string_view text) const {
  for (const std::string& literal : program_->literals) {
    if (literal.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace tinyvllm::jinja
