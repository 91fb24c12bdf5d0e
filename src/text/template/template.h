// A Jinja2 template, compiled once and rendered often, in a sandbox. This header is all that the
// rest of the program needs of the folder.
//
//   TRY_ASSIGN(const Template greeting, Template::compile("Hello {{ name }}!", {}));
//   TRY_ASSIGN(const Rendered text, greeting.render(variables, {}));
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/template/marked_text.h"
#include "text/template/sandbox.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

struct Rendered {
  std::string text;
  Origin first = Origin::kTemplate;  // whose the text begins with
  std::vector<uint32_t> flips;       // byte offsets at which that changes
};

// Immutable, and safe to render from many threads at once.
class Template {
 public:
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // Errors name the line and column.
  static Result<Template> compile(std::string_view source, const Limits& limits);

  // `now` is what strftime_now() prints. Errors name the line, the column and the expression.
  Result<Rendered> render(const Dict& variables, const Limits& limits, const std::tm& now) const;

  // Whether the template spells this text out, in its own text or in one of its strings.
  bool mentions(std::string_view text) const;

 private:
  struct Program;
  explicit Template(std::unique_ptr<Program> program);

  std::unique_ptr<Program> program_;
};

}  // namespace tinyvllm::jinja
