#include "text/template/symbols.h"

#include "text/template/walk.h"

namespace tinyvllm::jinja {

uint32_t NameTable::id(const std::string& name) {
  const auto [found, added] = ids_.try_emplace(name, static_cast<uint32_t>(names_.size()));
  if (added) names_.push_back(&found->first);
  return found->second;
}

uint16_t Function::slot(uint32_t level, uint32_t name) {
  constexpr size_t kMostSlots = 0xFFFF;
  if (slots.size() >= kMostSlots) fail("more than ", kMostSlots, " variables");
  const uint64_t key = uint64_t{level} << 32 | name;
  return slots.try_emplace(key, static_cast<uint16_t>(slots.size())).first->second;
}

const Symbols* Symbols::owner(uint32_t id) const {
  const Symbols* symbols = this;
  while (symbols != nullptr && !symbols->knows(id)) symbols = symbols->parent_;
  return symbols;
}

Symbols::Entry& Symbols::entry_of(const std::string& name, uint32_t& id) {
  id = names_->id(name);
  if (id >= entries_.size()) entries_.resize(names_->size());
  return entries_[id];
}

void Symbols::load(const std::string& name) {
  uint32_t id = 0;
  Entry& entry = entry_of(name, id);
  if (owner(id) == nullptr) entry.start = Start::kContext;
}

void Symbols::store(const std::string& name) {
  uint32_t id = 0;
  Entry& entry = entry_of(name, id);
  entry.stored = true;
  if (entry.start != Start::kUnknown) return;
  const bool outer = parent_ != nullptr && parent_->owner(id) != nullptr;
  entry.start = outer ? Start::kOuter : Start::kNothing;
}

void Symbols::declare_parameter(const std::string& name) {
  uint32_t id = 0;
  entry_of(name, id) = {Start::kParameter, true};
}

void Symbols::analyze(const Expr* expr) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kField) return load(static_cast<const Field&>(*expr).name);
  if (expr->kind == ExprKind::kTuple) {
    for (const ExprPtr& item : static_cast<const Sequence&>(*expr).items) analyze(item.get());
    return;
  }
  walk_names(expr, [this](const Name& name) {
    if (name.use == Name::Use::kLoad) {
      load(name.name);
    } else if (name.use == Name::Use::kStore) {
      store(name.name);
    } else {
      declare_parameter(name.name);
    }
  });
}

void Symbols::analyze(const Body& body) {
  for (const StmtPtr& stmt : body) analyze(*stmt);
}

void Symbols::analyze(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kOutput:
      for (const ExprPtr& item : static_cast<const Output&>(stmt).items) analyze(item.get());
      return;
    case StmtKind::kIf:
      return analyze_if(static_cast<const If&>(stmt), 0);
    case StmtKind::kFor:
      return analyze(static_cast<const For&>(stmt).iterable.get());
    case StmtKind::kSet:
      analyze(static_cast<const Set&>(stmt).value.get());
      return analyze(static_cast<const Set&>(stmt).target.get());
    case StmtKind::kSetBlock:
      return analyze(static_cast<const SetBlock&>(stmt).target.get());
    case StmtKind::kWith:
      for (const auto& [target, value] : static_cast<const With&>(stmt).bindings) {
        analyze(value.get());
      }
      return;
    case StmtKind::kMacro:
      return store(static_cast<const MacroDef&>(stmt).macro.name);
    case StmtKind::kCallBlock:
      return analyze(static_cast<const CallBlock&>(stmt).call.get());
    case StmtKind::kFilterBlock:
      return analyze(static_cast<const FilterBlock&>(stmt).filter.get());
    case StmtKind::kRefused:
      analyze(static_cast<const Refused&>(stmt).what.get());
      for (const std::string& name : static_cast<const Refused&>(stmt).names) store(name);
      return;
    case StmtKind::kBreak:
    case StmtKind::kContinue:
    case StmtKind::kBlock:
      return;
  }
}

// Each branch sees what was known before the `if`; afterwards all that any of them assigned is
// known.
void Symbols::analyze_if(const If& node, size_t branch) {
  analyze(node.branches[branch].test.get());
  Symbols body = *this;
  body.analyze(node.branches[branch].body);
  Symbols elif = *this;
  if (branch == 0) {
    for (size_t next = 1; next < node.branches.size(); ++next) elif.analyze_if(node, next);
  }
  Symbols otherwise = *this;
  if (branch == 0) otherwise.analyze(node.otherwise);
  merge_branches(body, elif, otherwise);
}

void Symbols::merge_branches(const Symbols& body, const Symbols& elif, const Symbols& otherwise) {
  entries_.resize(names_->size());
  sandbox_->charge(entries_.size());
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    const bool before = entries_[id].stored;
    for (const Symbols* branch : {&body, &elif, &otherwise}) {
      if (!branch->knows(id)) continue;
      entries_[id].start = branch->entries_[id].start;
      entries_[id].stored |= branch->entries_[id].stored;
    }
    if (before || !entries_[id].stored) continue;
    // Assigned in a branch that may not be taken: then the variable is what it was outside.
    const bool outer = parent_ != nullptr && parent_->owner(id) != nullptr;
    entries_[id].start = outer ? Start::kOuter : Start::kContext;
  }
}

Variable Symbols::variable_of(const Symbols& owner, uint32_t id) const {
  Variable variable;
  for (const Function* f = function_; f != owner.function_; f = f->outer) variable.hops += 1;
  variable.slot = owner.function_->slot(owner.level_, id);
  return variable;
}

bool Symbols::find(const std::string& name, Variable& variable) const {
  const uint32_t id = names_->id(name);
  const Symbols* found = owner(id);
  if (found == nullptr) return false;
  variable = variable_of(*found, id);
  return true;
}

Scope Symbols::entry() const {
  Scope scope;
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    const Start start = entries_[id].start;
    if (start == Start::kUnknown) continue;
    const uint16_t slot = function_->slot(level_, id);
    scope.slots.push_back(slot);
    if (start == Start::kParameter) continue;
    Scope::Load& load = scope.loads.emplace_back();
    load.slot = slot;
    if (start == Start::kContext) {
      load.from = Scope::Load::From::kContext;
      load.name = make_str(sandbox_->heap(), names_->name(id), Origin::kTemplate);
    } else if (start == Start::kOuter) {
      load.from = Scope::Load::From::kOuter;
      load.outer = variable_of(*parent_->owner(id), id);
    }
  }
  return scope;
}

}  // namespace tinyvllm::jinja
