#include "text/template/scope.h"

#include <deque>
#include <set>
#include <utility>

#include "text/template/native.h"
#include "text/template/symbols.h"
#include "text/template/walk.h"

namespace tinyvllm::jinja {
namespace {

// Where the walk stands. In a soft frame, inside of an `if`, an unknown filter is an error only if
// it is reached.
struct Frame {
  Symbols* symbols;
  bool soft = false;
  bool top_level = false;
};

// Those of `names` that the body uses without having assigned them before.
std::set<std::string> undeclared(const Body& body, std::set<std::string> names) {
  std::set<std::string> found;
  walk_names(body, [&](const Name& name) {
    if (name.use == Name::Use::kLoad && names.contains(name.name)) {
      found.insert(name.name);
    } else {
      names.erase(name.name);
    }
  });
  return found;
}

ExprPtr copy_target(const Expr& target) {
  if (target.kind == ExprKind::kName) {
    const auto& name = static_cast<const Name&>(target);
    auto copy = std::make_unique<Name>();
    copy->name = name.name;
    copy->text = name.text;
    copy->use = name.use;
    copy->at = name.at;
    return copy;
  }
  auto copy = std::make_unique<Sequence>(ExprKind::kTuple);
  copy->at = target.at;
  for (const ExprPtr& item : static_cast<const Sequence&>(target).items) {
    copy->items.push_back(copy_target(*item));
  }
  return copy;
}

void declare_target(const Expr& target, Symbols& symbols) {
  walk_names(&target, [&](const Name& name) { symbols.declare_parameter(name.name); });
}

class Resolver {
 public:
  explicit Resolver(Sandbox& sandbox) : sandbox_(sandbox) {}

  RootScope run(Body& body) {
    Function* function = new_function(nullptr);
    Symbols symbols = inner(function, nullptr);
    symbols.analyze(body);
    root_ = &symbols;
    visit(body, {&symbols, false, /*top_level=*/true});
    RootScope root;
    root.scope = entry_of(symbols);
    root.slots = slots(function);
    return root;
  }

 private:
  Function* new_function(Function* outer) { return &functions_.emplace_back(Function{outer}); }
  static uint32_t slots(const Function* function) {
    return static_cast<uint32_t>(function->slots.size());
  }
  Symbols inner(Function* function, Symbols* parent) {
    return Symbols(sandbox_, names_, function, parent);
  }
  Symbols inner(const Frame& frame) { return inner(frame.symbols->function(), frame.symbols); }

  void visit(Body& body, const Frame& frame) {
    for (StmtPtr& stmt : body) visit(*stmt, frame);
  }

  void visit(Stmt& stmt, const Frame& frame) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
        for (ExprPtr& item : static_cast<Output&>(stmt).items) visit(item.get(), frame);
        return;
      case StmtKind::kIf:
        return visit_if(static_cast<If&>(stmt), frame);
      case StmtKind::kFor:
        return visit_for(static_cast<For&>(stmt), frame);
      case StmtKind::kSet:
        visit(static_cast<Set&>(stmt).target.get(), frame);
        return visit(static_cast<Set&>(stmt).value.get(), frame);
      case StmtKind::kSetBlock:
        return visit_set_block(static_cast<SetBlock&>(stmt), frame);
      case StmtKind::kWith:
        return visit_with(static_cast<With&>(stmt), frame);
      case StmtKind::kMacro: {
        auto& node = static_cast<MacroDef&>(stmt);
        visit_macro(node.macro, node.at, frame);
        node.variable = variable(node.macro.name, node.at, frame);
        return;
      }
      case StmtKind::kCallBlock:
        visit_macro(static_cast<CallBlock&>(stmt).caller, stmt.at, frame);
        return visit(static_cast<CallBlock&>(stmt).call.get(), frame);
      case StmtKind::kFilterBlock:
        return visit_filter_block(static_cast<FilterBlock&>(stmt), frame);
      case StmtKind::kBlock:
        return visit_block(static_cast<Block&>(stmt));
      case StmtKind::kRefused:
        if (static_cast<Refused&>(stmt).tag == "extends" && !frame.top_level) {
          throw TemplateError{"'extends' must stand at the top level", stmt.at};
        }
        return visit(static_cast<Refused&>(stmt).what.get(), frame);
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        return;
    }
  }

  void visit_if(If& node, Frame frame) {
    frame.soft = true;
    for (If::Branch& branch : node.branches) {
      visit(branch.test.get(), frame);
      visit(branch.body, frame);
    }
    visit(node.otherwise, frame);
  }

  void visit_for(For& node, const Frame& frame) {
    walk_names(node, [](const Name& name) {
      if (name.use == Name::Use::kStore && name.name == "loop") {
        throw TemplateError{"the special variable 'loop' cannot be assigned in a loop", name.at};
      }
    });
    visit(node.iterable.get(), frame);
    if (node.test != nullptr) visit_loop_test(node, frame);

    Symbols symbols = inner(frame);
    if (!undeclared(node.body, {"loop"}).empty()) {
      symbols.declare_parameter("loop");
      node.loop = Variable{};
    }
    declare_target(*node.target, symbols);
    symbols.analyze(node.body);
    if (node.loop.has_value()) symbols.find("loop", *node.loop);
    visit(node.target.get(), {&symbols});
    visit(node.body, {&symbols});
    node.scope = entry_of(symbols);

    Symbols otherwise = inner(frame);
    otherwise.analyze(node.otherwise);
    visit(node.otherwise, {&otherwise});
    node.otherwise_scope = entry_of(otherwise);
  }

  void visit_loop_test(For& node, const Frame& frame) {
    Function* function = new_function(frame.symbols->function());
    Symbols symbols = inner(function, frame.symbols);
    node.test_target = copy_target(*node.target);
    declare_target(*node.target, symbols);
    symbols.analyze(node.test.get());
    visit(node.test_target.get(), {&symbols});
    visit(node.test.get(), {&symbols});
    node.test_scope = entry_of(symbols);
    node.test_slots = slots(function);
  }

  void visit_set_block(SetBlock& node, const Frame& frame) {
    Symbols symbols = inner(frame);
    symbols.analyze(node.body);
    visit(node.body, {&symbols});
    visit(node.filter.get(), {&symbols});
    node.scope = entry_of(symbols);
    visit(node.target.get(), frame);
  }

  void visit_with(With& node, const Frame& frame) {
    Symbols symbols = inner(frame);
    symbols.analyze(node.autoescape.get());
    for (auto& [target, value] : node.bindings) symbols.analyze(target.get());
    symbols.analyze(node.body);
    visit(node.autoescape.get(), {&symbols});
    for (auto& [target, value] : node.bindings) {
      visit(target.get(), {&symbols});
      visit(value.get(), frame);
    }
    visit(node.body, {&symbols});
    node.scope = entry_of(symbols);
  }

  void visit_filter_block(FilterBlock& node, const Frame& frame) {
    Symbols symbols = inner(frame);
    symbols.analyze(node.body);
    symbols.analyze(node.filter.get());
    visit(node.body, {&symbols});
    visit(node.filter.get(), {&symbols});
    node.scope = entry_of(symbols);
  }

  void visit_macro(MacroBody& macro, Position at, const Frame& frame) {
    Function* function = new_function(frame.symbols->function());
    Symbols symbols = inner(function, frame.symbols);
    for (const MacroBody::Parameter& parameter : macro.parameters) {
      symbols.declare_parameter(parameter.name->name);
    }
    for (const MacroBody::Parameter& parameter : macro.parameters) {
      symbols.analyze(parameter.fallback.get());
    }
    symbols.analyze(macro.body);
    declare_specials(macro, at, symbols);
    for (MacroBody::Parameter& parameter : macro.parameters) {
      visit(parameter.name.get(), {&symbols});
      visit(parameter.fallback.get(), {&symbols});
    }
    visit(macro.body, {&symbols});
    macro.scope = entry_of(symbols);
    macro.slots = slots(function);
  }

  // caller, kwargs and varargs are there for the macros that use them.
  void declare_specials(MacroBody& macro, Position at, Symbols& symbols) {
    const std::set<std::string> used = undeclared(macro.body, {"caller", "kwargs", "varargs"});
    for (const char* special : {"caller", "kwargs", "varargs"}) {
      if (!used.contains(special)) continue;
      const MacroBody::Parameter* parameter = nullptr;
      for (const MacroBody::Parameter& p : macro.parameters) {
        if (p.name->name == special) parameter = &p;
      }
      const bool caller = std::string_view(special) == "caller";
      if (parameter != nullptr) {
        if (caller && parameter->fallback == nullptr) {
          throw TemplateError{"the parameter 'caller' must be omitted or have a default", at};
        }
        macro.uses_caller |= caller;
        continue;
      }
      symbols.declare_parameter(special);
      Variable variable;
      symbols.find(special, variable);
      macro.uses_caller |= caller;
      (caller ? macro.caller : special[0] == 'k' ? macro.kwargs : macro.varargs) = variable.slot;
    }
  }

  void visit_block(Block& node) {
    if (!blocks_.insert(node.name).second) {
      throw TemplateError{str_cat("block '", node.name, "' is defined twice"), node.at};
    }
    const bool around = std::exchange(in_block_, true);
    Function* function = new_function(nullptr);
    Symbols symbols = inner(function, nullptr);
    symbols.analyze(node.body);
    visit(node.body, {&symbols});
    node.scope = entry_of(symbols);
    node.slots = slots(function);
    in_block_ = around;
  }

  // In a block, names that are looked up find what the template has set at its top level.
  Scope entry_of(const Symbols& symbols) {
    Scope scope = symbols.entry();
    for (Scope::Load& load : scope.loads) {
      if (!in_block_ || load.from != Scope::Load::From::kContext) continue;
      if (root_->find(std::string(load.name->view()), load.outer)) {
        load.from = Scope::Load::From::kRoot;
      }
    }
    return scope;
  }

  void visit(Expr* expr, const Frame& frame);
  void visit(CallArguments& arguments, const Frame& frame);
  void visit_apply(Apply& apply, const Frame& frame);

  Variable variable(const std::string& name, Position at, const Frame& frame) {
    Variable variable;
    if (!frame.symbols->find(name, variable)) {
      throw TemplateError{str_cat("'", name, "' cannot be used here"), at};
    }
    return variable;
  }

  Sandbox& sandbox_;
  NameTable names_;
  const Symbols* root_ = nullptr;
  bool in_block_ = false;
  std::deque<Function> functions_;
  std::set<std::string> blocks_;
};

void Resolver::visit(Expr* expr, const Frame& frame) {
  if (expr == nullptr) return;
  switch (expr->kind) {
    case ExprKind::kLiteral:
      return;
    case ExprKind::kName: {
      auto& name = static_cast<Name&>(*expr);
      name.variable = variable(name.name, name.at, frame);
      return;
    }
    case ExprKind::kField: {
      auto& field = static_cast<Field&>(*expr);
      field.variable = variable(field.name, field.at, frame);
      return;
    }
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kConcat:
      for (ExprPtr& item : static_cast<Sequence&>(*expr).items) visit(item.get(), frame);
      return;
    case ExprKind::kDict:
      for (auto& [key, value] : static_cast<DictDisplay&>(*expr).items) {
        visit(key.get(), frame);
        visit(value.get(), frame);
      }
      return;
    case ExprKind::kUnary:
      return visit(static_cast<Unary&>(*expr).operand.get(), frame);
    case ExprKind::kBinary:
    case ExprKind::kLogic:
      visit(static_cast<Binary&>(*expr).left.get(), frame);
      return visit(static_cast<Binary&>(*expr).right.get(), frame);
    case ExprKind::kCompare:
      visit(static_cast<Compare&>(*expr).first.get(), frame);
      for (auto& [op, operand] : static_cast<Compare&>(*expr).rest) visit(operand.get(), frame);
      return;
    case ExprKind::kAttribute: {
      auto& attribute = static_cast<Attribute&>(*expr);
      attribute.method = find_method_name(attribute.name->view());
      return visit(attribute.object.get(), frame);
    }
    case ExprKind::kItem:
      visit(static_cast<Item&>(*expr).object.get(), frame);
      return visit(static_cast<Item&>(*expr).index.get(), frame);
    case ExprKind::kSlice: {
      auto& slice = static_cast<Slice&>(*expr);
      for (ExprPtr* part : {&slice.object, &slice.start, &slice.stop, &slice.step}) {
        visit(part->get(), frame);
      }
      return;
    }
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return visit_apply(static_cast<Apply&>(*expr), frame);
    case ExprKind::kCall:
      visit(static_cast<Call&>(*expr).callee.get(), frame);
      return visit(static_cast<Call&>(*expr).arguments, frame);
    case ExprKind::kConditional: {
      auto& conditional = static_cast<Conditional&>(*expr);
      Frame soft = frame;
      soft.soft = true;
      visit(conditional.test.get(), soft);
      visit(conditional.then.get(), soft);
      return visit(conditional.otherwise.get(), soft);
    }
  }
}

void Resolver::visit(CallArguments& arguments, const Frame& frame) {
  for (ExprPtr& value : arguments.positional) visit(value.get(), frame);
  for (CallArguments::Named& named : arguments.named) visit(named.value.get(), frame);
  visit(arguments.star.get(), frame);
  visit(arguments.star_star.get(), frame);
}

void Resolver::visit_apply(Apply& apply, const Frame& frame) {
  const bool filter = apply.kind == ExprKind::kFilter;
  apply.native = filter ? find_filter(apply.name) : find_test(apply.name);
  if (apply.native == nullptr && !frame.soft) {
    throw TemplateError{str_cat("no ", filter ? "filter" : "test", " named '", apply.name, "'"),
                        apply.at};
  }
  visit(apply.operand.get(), frame);
  visit(apply.arguments, frame);
}

}  // namespace

RootScope resolve_scopes(Body& body, Sandbox& sandbox) { return Resolver(sandbox).run(body); }

}  // namespace tinyvllm::jinja
