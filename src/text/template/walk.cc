#include "text/template/walk.h"

namespace tinyvllm::jinja {
namespace {

void walk_arguments(const CallArguments& arguments, const NameVisitor& visit) {
  for (const ExprPtr& value : arguments.positional) walk_names(value.get(), visit);
  for (const CallArguments::Named& named : arguments.named) walk_names(named.value.get(), visit);
  walk_names(arguments.star.get(), visit);
  walk_names(arguments.star_star.get(), visit);
}

void walk_macro(const MacroBody& macro, const NameVisitor& visit) {
  for (const MacroBody::Parameter& parameter : macro.parameters) visit(*parameter.name);
  for (const MacroBody::Parameter& parameter : macro.parameters) {
    walk_names(parameter.fallback.get(), visit);
  }
  walk_names(macro.body, visit);
}

}  // namespace

void walk_names(const Expr* expr, const NameVisitor& visit) {
  if (expr == nullptr) return;
  switch (expr->kind) {
    case ExprKind::kLiteral:
    case ExprKind::kField:
      return;
    case ExprKind::kName:
      return visit(static_cast<const Name&>(*expr));
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kConcat:
      for (const ExprPtr& item : static_cast<const Sequence&>(*expr).items) {
        walk_names(item.get(), visit);
      }
      return;
    case ExprKind::kDict:
      for (const auto& [key, value] : static_cast<const DictDisplay&>(*expr).items) {
        walk_names(key.get(), visit);
        walk_names(value.get(), visit);
      }
      return;
    case ExprKind::kUnary:
      return walk_names(static_cast<const Unary&>(*expr).operand.get(), visit);
    case ExprKind::kBinary:
    case ExprKind::kLogic:
      walk_names(static_cast<const Binary&>(*expr).left.get(), visit);
      return walk_names(static_cast<const Binary&>(*expr).right.get(), visit);
    case ExprKind::kCompare: {
      const auto& compare = static_cast<const Compare&>(*expr);
      walk_names(compare.first.get(), visit);
      for (const auto& [op, operand] : compare.rest) walk_names(operand.get(), visit);
      return;
    }
    case ExprKind::kAttribute:
      return walk_names(static_cast<const Attribute&>(*expr).object.get(), visit);
    case ExprKind::kItem:
      walk_names(static_cast<const Item&>(*expr).object.get(), visit);
      return walk_names(static_cast<const Item&>(*expr).index.get(), visit);
    case ExprKind::kSlice: {
      const auto& slice = static_cast<const Slice&>(*expr);
      for (const ExprPtr* part : {&slice.object, &slice.start, &slice.stop, &slice.step}) {
        walk_names(part->get(), visit);
      }
      return;
    }
    case ExprKind::kFilter:
    case ExprKind::kTest:
      walk_names(static_cast<const Apply&>(*expr).operand.get(), visit);
      return walk_arguments(static_cast<const Apply&>(*expr).arguments, visit);
    case ExprKind::kCall:
      walk_names(static_cast<const Call&>(*expr).callee.get(), visit);
      return walk_arguments(static_cast<const Call&>(*expr).arguments, visit);
    case ExprKind::kConditional: {
      const auto& conditional = static_cast<const Conditional&>(*expr);
      walk_names(conditional.test.get(), visit);
      walk_names(conditional.then.get(), visit);
      return walk_names(conditional.otherwise.get(), visit);
    }
  }
}

void walk_names(const Stmt& stmt, const NameVisitor& visit) {
  switch (stmt.kind) {
    case StmtKind::kOutput:
      for (const ExprPtr& item : static_cast<const Output&>(stmt).items) {
        walk_names(item.get(), visit);
      }
      return;
    case StmtKind::kIf: {
      const auto& node = static_cast<const If&>(stmt);
      for (const If::Branch& branch : node.branches) {
        walk_names(branch.test.get(), visit);
        walk_names(branch.body, visit);
      }
      return walk_names(node.otherwise, visit);
    }
    case StmtKind::kFor: {
      const auto& node = static_cast<const For&>(stmt);
      walk_names(node.target.get(), visit);
      walk_names(node.iterable.get(), visit);
      walk_names(node.body, visit);
      walk_names(node.otherwise, visit);
      return walk_names(node.test.get(), visit);
    }
    case StmtKind::kSet:
      walk_names(static_cast<const Set&>(stmt).target.get(), visit);
      return walk_names(static_cast<const Set&>(stmt).value.get(), visit);
    case StmtKind::kSetBlock: {
      const auto& node = static_cast<const SetBlock&>(stmt);
      walk_names(node.target.get(), visit);
      walk_names(node.filter.get(), visit);
      return walk_names(node.body, visit);
    }
    case StmtKind::kWith: {
      const auto& node = static_cast<const With&>(stmt);
      walk_names(node.autoescape.get(), visit);
      for (const auto& [target, value] : node.bindings) walk_names(target.get(), visit);
      for (const auto& [target, value] : node.bindings) walk_names(value.get(), visit);
      return walk_names(node.body, visit);
    }
    case StmtKind::kMacro:
      return walk_macro(static_cast<const MacroDef&>(stmt).macro, visit);
    case StmtKind::kCallBlock:
      walk_names(static_cast<const CallBlock&>(stmt).call.get(), visit);
      return walk_macro(static_cast<const CallBlock&>(stmt).caller, visit);
    case StmtKind::kFilterBlock:
      walk_names(static_cast<const FilterBlock&>(stmt).body, visit);
      return walk_names(static_cast<const FilterBlock&>(stmt).filter.get(), visit);
    case StmtKind::kRefused:
      return walk_names(static_cast<const Refused&>(stmt).what.get(), visit);
    case StmtKind::kBreak:
    case StmtKind::kContinue:
    case StmtKind::kBlock:
      return;
  }
}

void walk_names(const Body& body, const NameVisitor& visit) {
  for (const StmtPtr& stmt : body) walk_names(*stmt, visit);
}

}  // namespace tinyvllm::jinja
