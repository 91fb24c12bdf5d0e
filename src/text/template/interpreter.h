// Runs a template: evaluates expressions (eval.cc), executes statements (exec.cc), calls macros
// (call.cc). One Interpreter renders once, on one thread; the tree it reads is shared.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/template/ast.h"
#include "text/template/methods.h"
#include "text/template/native.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

// A function being run: its variables, and the function around it in the source.
struct Activation {
  Activation* outer;
  Value* slots;
};

// A macro as a value: its definition together with the variables around it.
struct Macro {
  const MacroBody* body;
  Activation* outer;
};

class Interpreter {
 public:
  // `variables` are what the template was given. `source` serves error messages.
  Interpreter(Sandbox& sandbox, const Dict& variables, std::string_view source, TextBuilder& output)
      : sandbox_(sandbox), variables_(variables), source_(source), output_(&output) {}

  void run(const Body& body, const Scope& scope, uint32_t slots);

  Value evaluate(const Expr& expr, Activation& in);
  bool is_true(const Expr& expr, Activation& in);
  void assign(const Expr& target, const Value& value, Activation& in);

  Activation* activate(Activation* outer, uint32_t slots);
  void enter(const Scope& scope, Activation& in);

  Sandbox& sandbox() { return sandbox_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  // -- eval.cc
  Value evaluate_node(const Expr& expr, Activation& in);
  Value load(const Name& name, const Activation& in);
  Value evaluate_dict(const DictDisplay& node, Activation& in);
  Value evaluate_concat(const Sequence& node, Activation& in);
  Value evaluate_compare(const Compare& node, Activation& in);
  Value evaluate_slice(const Slice& node, Activation& in);
  Value evaluate_conditional(const Conditional& node, Activation& in);
  Value evaluate_apply(const Apply& node, Activation& in);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& items, Activation& in);
  Arguments evaluate_arguments(const CallArguments& arguments, Activation& in);
  void spread_keywords(const Value& mapping, Arguments& arguments);

  // -- call.cc
  Value evaluate_call(const Call& node, Activation& in, const Macro* caller);
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const Macro& macro, const Arguments& arguments, Activation& in);

  // -- exec.cc
  Flow execute(const Body& body, Activation& in);
  Flow execute_node(const Stmt& stmt, Activation& in);
  void execute_output(const Output& node, Activation& in);
  Flow execute_if(const If& node, Activation& in);
  Flow execute_for(const For& node, Activation& in);
  Iterator* loop_source(const For& node, const Value& iterable, Activation& in);
  Flow execute_with(const With& node, Activation& in);
  Flow execute_set_block(const SetBlock& node, Activation& in);
  Flow execute_filter_block(const FilterBlock& node, Activation& in);
  void execute_call_block(const CallBlock& node, Activation& in);
  void execute_block(const Block& node);
  void leave(const Scope& scope, Activation& in);
  Value lookup(const Str& name) const;
  void write(const Value& value);

  Sandbox& sandbox_;
  const Dict& variables_;
  const std::string_view source_;
  TextBuilder* output_;              // of the innermost block that is being captured
  const Str* block_text_ = nullptr;  // what a filter without an operand is applied to
  Activation* root_ = nullptr;
};

}  // namespace tinyvllm::jinja
