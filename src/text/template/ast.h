// A parsed template: expressions and statements. The parser makes the tree, scope.h then writes
// into it where each variable lives, and the interpreter reads it. A tree is immutable once
// compiled and may be rendered by many threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/template/sandbox.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

struct Native;      // native.h: a built-in filter, test, function or method
struct MethodName;  // methods.h: an attribute name that some type has as a method

// A variable's place at run time: so many functions outwards, and a slot in that function's frame.
struct Variable {
  uint16_t hops = 0;
  uint16_t slot = 0;
};

// ---- Expressions

enum class ExprKind : uint8_t {
  kLiteral,
  kName,
  kField,  // `ns.name` as the target of an assignment
  kTuple,
  kList,
  kDict,
  kUnary,
  kBinary,
  kLogic,
  kConcat,
  kCompare,
  kAttribute,
  kItem,
  kSlice,
  kFilter,
  kTest,
  kCall,
  kConditional,
};

struct Expr {
  explicit Expr(ExprKind k) : kind(k) {}
  virtual ~Expr() = default;

  const ExprKind kind;
  uint16_t depth = 1;  // of the tree below
  Position at;
  uint32_t begin = 0;  // its spelling in the source
  uint32_t end = 0;
};
using ExprPtr = std::unique_ptr<Expr>;

struct Literal : Expr {
  Literal() : Expr(ExprKind::kLiteral) {}
  Value value;
};

struct Name : Expr {
  Name() : Expr(ExprKind::kName) {}
  enum class Use : uint8_t { kLoad, kStore, kParameter };
  std::string name;
  const Str* text = nullptr;  // the same, for messages and lookups
  Use use = Use::kLoad;
  Variable variable;
};

struct Field : Expr {
  Field() : Expr(ExprKind::kField) {}
  std::string name;  // of the namespace
  const Str* attribute = nullptr;
  Variable variable;
};

struct Sequence : Expr {  // kTuple, kList, kConcat
  explicit Sequence(ExprKind k) : Expr(k) {}
  std::vector<ExprPtr> items;
};

struct DictDisplay : Expr {
  DictDisplay() : Expr(ExprKind::kDict) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kPos,
  kNeg,
  kNot,
  kAnd,
  kOr,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,
};

struct Unary : Expr {
  Unary() : Expr(ExprKind::kUnary) {}
  Op op = Op::kNot;
  ExprPtr operand;
};

struct Binary : Expr {  // kBinary, kLogic
  explicit Binary(ExprKind k) : Expr(k) {}
  Op op = Op::kAdd;
  ExprPtr left, right;
};

struct Compare : Expr {  // a < b <= c: each operand is evaluated once
  Compare() : Expr(ExprKind::kCompare) {}
  ExprPtr first;
  std::vector<std::pair<Op, ExprPtr>> rest;
};

struct Attribute : Expr {  // object.name
  Attribute() : Expr(ExprKind::kAttribute) {}
  ExprPtr object;
  const Str* name = nullptr;
  const MethodName* method = nullptr;  // null: no type has a method of that name
};

struct Item : Expr {  // object[index]
  Item() : Expr(ExprKind::kItem) {}
  ExprPtr object, index;
};

struct Slice : Expr {  // object[start:stop:step], null where left out
  Slice() : Expr(ExprKind::kSlice) {}
  ExprPtr object, start, stop, step;
};

struct CallArguments {
  struct Named {
    std::string name;
    ExprPtr value;
  };
  std::vector<ExprPtr> positional;
  std::vector<Named> named;
  ExprPtr star, star_star;  // *args, **kwargs
};

struct Apply : Expr {  // kFilter, kTest: operand|name(…), operand is name(…)
  explicit Apply(ExprKind k) : Expr(k) {}
  ExprPtr operand;  // null: the text of the surrounding block
  std::string name;
  const Native* native = nullptr;  // null: there is none of that name
  CallArguments arguments;
};

struct Call : Expr {
  Call() : Expr(ExprKind::kCall) {}
  ExprPtr callee;
  CallArguments arguments;
};

struct Conditional : Expr {  // then if test else otherwise
  Conditional() : Expr(ExprKind::kConditional) {}
  ExprPtr test, then, otherwise;  // `otherwise` may be null
};

// ---- Statements

enum class StmtKind : uint8_t {
  kOutput,
  kIf,
  kFor,
  kBreak,
  kContinue,
  kSet,
  kSetBlock,
  kWith,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kBlock,
  kRefused,
};

struct Stmt {
  explicit Stmt(StmtKind k) : kind(k) {}
  virtual ~Stmt() = default;

  const StmtKind kind;
  Position at;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// What happens when a scope is entered: its variables start from somewhere; and when it is left:
// they are gone. Filled in by scope.cc.
struct Scope {
  struct Load {
    enum class From : uint8_t { kNothing, kContext, kOuter, kRoot };
    From from = From::kNothing;
    uint16_t slot = 0;
    Variable outer;             // kOuter: the variable of the enclosing scope that it continues
    const Str* name = nullptr;  // kContext: looked up among the variables passed to render();
                                // kRoot, in a block: the same if the template has not set it
  };
  std::vector<Load> loads;
  std::vector<uint16_t> slots;  // to be unset at the end
};

struct Output : Stmt {  // template text, {{ … }}, {% print … %}
  Output() : Stmt(StmtKind::kOutput) {}
  std::vector<ExprPtr> items;
};

struct If : Stmt {
  If() : Stmt(StmtKind::kIf) {}
  struct Branch {
    ExprPtr test;
    Body body;
  };
  std::vector<Branch> branches;  // if, elif, elif…
  Body otherwise;
};

struct For : Stmt {
  For() : Stmt(StmtKind::kFor) {}
  ExprPtr target, iterable;
  Body body, otherwise;
  Scope scope, otherwise_scope;
  std::optional<Variable> loop;  // where `loop` is kept, if the body asks for it

  // `for x in y if test`: the test runs as a function of its own, with its own target.
  ExprPtr test, test_target;
  Scope test_scope;
  uint32_t test_slots = 0;
};

struct Break : Stmt {
  Break() : Stmt(StmtKind::kBreak) {}
};
struct Continue : Stmt {
  Continue() : Stmt(StmtKind::kContinue) {}
};

struct Set : Stmt {
  Set() : Stmt(StmtKind::kSet) {}
  ExprPtr target, value;
};

struct SetBlock : Stmt {
  SetBlock() : Stmt(StmtKind::kSetBlock) {}
  ExprPtr target;
  ExprPtr filter;  // null, or a chain of Apply ending in one without an operand
  Body body;
  Scope scope;
};

struct With : Stmt {  // {% with %}, and {% autoescape %}
  With() : Stmt(StmtKind::kWith) {}
  ExprPtr autoescape;  // null, or what must be false
  std::vector<std::pair<ExprPtr, ExprPtr>> bindings;
  Body body;
  Scope scope;
};

// The part that macros and call blocks share: a function that returns the text of its body.
struct MacroBody {
  struct Parameter {
    std::unique_ptr<Name> name;
    ExprPtr fallback;  // the default, or null
  };
  std::string name;  // empty for a call block
  std::vector<Parameter> parameters;
  Body body;
  Scope scope;
  uint32_t slots = 0;
  bool explicit_caller = false;  // `caller` is among the parameters
  bool uses_caller = false;
  std::optional<uint16_t> caller, kwargs, varargs;  // slots, if the body asks for them
};

struct MacroDef : Stmt {
  MacroDef() : Stmt(StmtKind::kMacro) {}
  MacroBody macro;
  Variable variable;
};

struct CallBlock : Stmt {  // {% call %}, and {% generation %} with no call
  CallBlock() : Stmt(StmtKind::kCallBlock) {}
  std::unique_ptr<Call> call;
  MacroBody caller;
};

struct FilterBlock : Stmt {
  FilterBlock() : Stmt(StmtKind::kFilterBlock) {}
  ExprPtr filter;
  Body body;
  Scope scope;
};

struct Block
    : Stmt {  // {% block name %}: with nothing to inherit from, its body in a scope of its own
  Block() : Stmt(StmtKind::kBlock) {}
  std::string name;
  bool required = false;
  Body body;
  Scope scope;
  uint32_t slots = 0;
};

// include, import, from, extends: a template has no access to files. Refused when it is reached.
struct Refused : Stmt {
  Refused() : Stmt(StmtKind::kRefused) {}
  std::string tag;
  std::vector<std::string> names;  // that the tag would have set
  ExprPtr what;
};

}  // namespace tinyvllm::jinja
