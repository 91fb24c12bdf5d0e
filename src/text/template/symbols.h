// The names of one scope while scopes are being resolved: which of them it loads, which it assigns,
// and where each variable starts from when the scope is entered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/template/ast.h"

namespace tinyvllm::jinja {

// Every name of a template, numbered.
class NameTable {
 public:
  uint32_t id(const std::string& name);
  const std::string& name(uint32_t id) const { return *names_[id]; }
  size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<const std::string*> names_;
};

// A function at run time: its variables, numbered. Scopes of equal depth reuse each other's slots.
struct Function {
  Function* outer = nullptr;
  std::unordered_map<uint64_t, uint16_t> slots{};

  uint16_t slot(uint32_t level, uint32_t name);
};

class Symbols {
 public:
  Symbols(Sandbox& sandbox, NameTable& names, Function* function, const Symbols* parent)
      : sandbox_(&sandbox),
        names_(&names),
        function_(function),
        parent_(parent),
        level_(parent == nullptr ? 0 : parent->level_ + 1) {}

  Function* function() const { return function_; }

  void load(const std::string& name);
  void store(const std::string& name);
  void declare_parameter(const std::string& name);

  // Reads a statement's effect on this scope; what opens a scope of its own is not entered.
  void analyze(const Stmt& stmt);
  void analyze(const Body& body);
  void analyze(const Expr* expr);

  // The variable that `name` means here; false if the scope was never told of it.
  bool find(const std::string& name, Variable& variable) const;

  // What is to be done on entering the scope.
  Scope entry() const;

 private:
  enum class Start : uint8_t { kUnknown, kParameter, kContext, kOuter, kNothing };
  struct Entry {
    Start start = Start::kUnknown;
    bool stored = false;
  };

  Entry& entry_of(const std::string& name, uint32_t& id);
  bool knows(uint32_t id) const {
    return id < entries_.size() && entries_[id].start != Start::kUnknown;
  }
  const Symbols* owner(uint32_t id) const;
  void analyze_if(const If& node, size_t branch);
  void merge_branches(const Symbols& body, const Symbols& elif, const Symbols& otherwise);
  Variable variable_of(const Symbols& owner, uint32_t id) const;

  Sandbox* sandbox_;
  NameTable* names_;
  Function* function_;
  const Symbols* parent_;
  uint32_t level_;
  std::vector<Entry> entries_;  // by id
};

}  // namespace tinyvllm::jinja
