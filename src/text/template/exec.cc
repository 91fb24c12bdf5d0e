#include "text/template/interpreter.h"
#include "text/template/iterate.h"
#include "text/template/loop.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

// The items that pass a loop's own `if`, one at a time: the loop's body runs in between, and may
// change what the test sees.
struct FilteredItems final : Iterator {
  FilteredItems(Interpreter& i, const For& n, Activation& o, Iterator* s)
      : interpreter(i), node(n), outer(o), source(s) {}
  bool next(Value& out) override {
    const Nesting nesting(interpreter.sandbox());
    if (in == nullptr) {
      in = interpreter.activate(&outer, node.test_slots);
      interpreter.enter(node.test_scope, *in);
    }
    while (source->next(out)) {
      interpreter.assign(*node.test_target, out, *in);
      if (interpreter.is_true(*node.test, *in)) return true;
    }
    return false;
  }
  Interpreter& interpreter;
  const For& node;
  Activation& outer;
  Iterator* source;
  Activation* in = nullptr;
};

}  // namespace

void Interpreter::run(const Body& body, const Scope& scope, uint32_t slots) {
  root_ = activate(nullptr, slots);
  enter(scope, *root_);
  execute(body, *root_);
}

Activation* Interpreter::activate(Activation* outer, uint32_t slots) {
  Value* values = sandbox_.heap().array<Value>(slots);
  std::fill(values, values + slots, Value());
  return sandbox_.heap().make<Activation>(Activation{outer, values});
}

Value Interpreter::lookup(const Str& name) const {
  if (const Value* found = variables_.find(name.view())) return *found;
  if (const Native* function = find_function(name.view())) return Value(function);
  return Value();
}

void Interpreter::enter(const Scope& scope, Activation& in) {
  using From = Scope::Load::From;
  for (const Scope::Load& load : scope.loads) {
    Value& slot = in.slots[load.slot];
    if (load.from == From::kNothing) {
      slot = Value();
    } else if (load.from == From::kOuter) {
      const Activation* activation = &in;
      for (uint16_t hop = 0; hop < load.outer.hops; ++hop) activation = activation->outer;
      slot = activation->slots[load.outer.slot];
    } else {
      slot = load.from == From::kRoot ? root_->slots[load.outer.slot] : Value();
      if (slot.missing()) slot = lookup(*load.name);
    }
  }
}

void Interpreter::leave(const Scope& scope, Activation& in) {
  for (const uint16_t slot : scope.slots) in.slots[slot] = Value();
}

Interpreter::Flow Interpreter::execute(const Body& body, Activation& in) {
  const Nesting nesting(sandbox_);
  for (const StmtPtr& stmt : body) {
    sandbox_.charge(1);
    try {
      const Flow flow = execute_node(*stmt, in);
      if (flow != Flow::kNext) return flow;
    } catch (TemplateError& error) {
      if (error.at.line == 0) error.at = stmt->at;
      throw;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_node(const Stmt& stmt, Activation& in) {
  switch (stmt.kind) {
    case StmtKind::kOutput:
      execute_output(static_cast<const Output&>(stmt), in);
      return Flow::kNext;
    case StmtKind::kIf:
      return execute_if(static_cast<const If&>(stmt), in);
    case StmtKind::kFor:
      return execute_for(static_cast<const For&>(stmt), in);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kSet: {
      const auto& node = static_cast<const Set&>(stmt);
      assign(*node.target, evaluate(*node.value, in), in);
      return Flow::kNext;
    }
    case StmtKind::kSetBlock:
      return execute_set_block(static_cast<const SetBlock&>(stmt), in);
    case StmtKind::kWith:
      return execute_with(static_cast<const With&>(stmt), in);
    case StmtKind::kMacro: {
      const auto& node = static_cast<const MacroDef&>(stmt);
      const Macro* macro = sandbox_.heap().make<Macro>(Macro{&node.macro, &in});
      in.slots[node.variable.slot] = Value(macro);
      return Flow::kNext;
    }
    case StmtKind::kCallBlock:
      execute_call_block(static_cast<const CallBlock&>(stmt), in);
      return Flow::kNext;
    case StmtKind::kFilterBlock:
      return execute_filter_block(static_cast<const FilterBlock&>(stmt), in);
    case StmtKind::kBlock:
      execute_block(static_cast<const Block&>(stmt));
      return Flow::kNext;
    case StmtKind::kRefused:
      fail("'", static_cast<const Refused&>(stmt).tag, "' is refused: templates have no files");
  }
  return Flow::kNext;
}

void Interpreter::write(const Value& value) {
  print(sandbox_, *output_, value);
  if (output_->size() > sandbox_.limits().output_bytes) {
    fail("the text is longer than ", sandbox_.limits().output_bytes, " bytes");
  }
}

void Interpreter::execute_output(const Output& node, Activation& in) {
  for (const ExprPtr& item : node.items) {
    write(item->kind == ExprKind::kLiteral ? static_cast<const Literal&>(*item).value
                                           : evaluate(*item, in));
  }
}

Interpreter::Flow Interpreter::execute_if(const If& node, Activation& in) {
  for (const If::Branch& branch : node.branches) {
    if (is_true(*branch.test, in)) return execute(branch.body, in);
  }
  return execute(node.otherwise, in);
}

Iterator* Interpreter::loop_source(const For& node, const Value& iterable, Activation& in) {
  Iterator* items = iterate(sandbox_, iterable);
  if (node.test == nullptr) return items;
  return sandbox_.heap().make<FilteredItems>(*this, node, in, items);
}

Interpreter::Flow Interpreter::execute_for(const For& node, Activation& in) {
  const Value iterable = evaluate(*node.iterable, in);
  Iterator* items = loop_source(node, iterable, in);
  Loop* loop = nullptr;
  if (node.loop.has_value()) {
    loop = make_loop(sandbox_, node.test == nullptr ? iterable : Value(items), items);
  }
  // Jinja2 learns that a loop ran from an iteration that came to its end, so one that always breaks
  // off or continues gets its `else` all the same.
  bool completed = false;
  Flow outcome = Flow::kNext;
  for (Value item; outcome != Flow::kBreak;) {
    if (loop != nullptr ? !loop->advance() : !items->next(item)) break;
    if (loop != nullptr) {
      item = loop->current;
      in.slots[node.loop->slot] = Value(loop);
    }
    assign(*node.target, item, in);
    enter(node.scope, in);
    outcome = execute(node.body, in);
    completed |= outcome == Flow::kNext;
  }
  leave(node.scope, in);
  if (completed || node.otherwise.empty()) return Flow::kNext;
  enter(node.otherwise_scope, in);
  const Flow flow = execute(node.otherwise, in);
  leave(node.otherwise_scope, in);
  return flow;
}

Interpreter::Flow Interpreter::execute_with(const With& node, Activation& in) {
  enter(node.scope, in);
  if (node.autoescape != nullptr && is_true(*node.autoescape, in)) {
    fail("autoescape is refused: prompts are not HTML");
  }
  for (const auto& [target, value] : node.bindings) assign(*target, evaluate(*value, in), in);
  const Flow flow = execute(node.body, in);
  leave(node.scope, in);
  return flow;
}

Interpreter::Flow Interpreter::execute_set_block(const SetBlock& node, Activation& in) {
  enter(node.scope, in);
  TextBuilder text(sandbox_.heap());
  TextBuilder* const outside = std::exchange(output_, &text);
  const Flow flow = execute(node.body, in);
  output_ = outside;
  if (flow != Flow::kNext) return flow;  // what was captured is lost
  Value value(text.finish());
  if (node.filter != nullptr) {
    const Str* const around = std::exchange(block_text_, value.str);
    value = evaluate(*node.filter, in);
    block_text_ = around;
  }
  assign(*node.target, value, in);
  leave(node.scope, in);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_filter_block(const FilterBlock& node, Activation& in) {
  enter(node.scope, in);
  TextBuilder text(sandbox_.heap());
  TextBuilder* const outside = std::exchange(output_, &text);
  const Flow flow = execute(node.body, in);
  output_ = outside;
  if (flow != Flow::kNext) return flow;
  const Str* const around = std::exchange(block_text_, text.finish());
  const Value value = evaluate(*node.filter, in);
  block_text_ = around;
  to_str(value, "a filter block");  // unlike {{ }}, nothing turns it into text
  write(value);
  leave(node.scope, in);
  return Flow::kNext;
}

void Interpreter::execute_call_block(const CallBlock& node, Activation& in) {
  const Macro* caller = sandbox_.heap().make<Macro>(Macro{&node.caller, &in});
  const Value text =
      node.call == nullptr ? call_macro(*caller, {}) : evaluate_call(*node.call, in, caller);
  to_str(text, "a call block");
  write(text);
}

void Interpreter::execute_block(const Block& node) {
  if (node.required) fail("required block '", node.name, "' not found");
  Activation* in = activate(nullptr, node.slots);
  enter(node.scope, *in);
  execute(node.body, *in);
}

}  // namespace tinyvllm::jinja
