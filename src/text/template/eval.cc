#include "text/template/interpreter.h"
#include "text/template/iterate.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {

Value Interpreter::evaluate(const Expr& expr, Activation& in) {
  const Nesting nesting(sandbox_);
  sandbox_.charge(1);
  try {
    return evaluate_node(expr, in);
  } catch (TemplateError& error) {
    // The innermost expression is the one that failed; further out it has a place already.
    if (error.at.line == 0) {
      error.at = expr.at;
      error.source = source_.substr(expr.begin, expr.end - expr.begin);
    }
    throw;
  }
}

Value Interpreter::evaluate_node(const Expr& expr, Activation& in) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return static_cast<const Literal&>(expr).value;
    case ExprKind::kName:
      return load(static_cast<const Name&>(expr), in);
    case ExprKind::kTuple:
      return new_tuple(sandbox_.heap(), evaluate_all(static_cast<const Sequence&>(expr).items, in));
    case ExprKind::kList:
      return new_list(sandbox_.heap(), evaluate_all(static_cast<const Sequence&>(expr).items, in));
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictDisplay&>(expr), in);
    case ExprKind::kUnary: {
      const auto& node = static_cast<const Unary&>(expr);
      return unary(sandbox_, node.op, evaluate(*node.operand, in));
    }
    case ExprKind::kBinary: {
      const auto& node = static_cast<const Binary&>(expr);
      const Value left = evaluate(*node.left, in);
      return binary(sandbox_, node.op, left, evaluate(*node.right, in));
    }
    case ExprKind::kLogic: {
      const auto& node = static_cast<const Binary&>(expr);
      const Value left = evaluate(*node.left, in);
      const bool decided = jinja::is_true(sandbox_, left) == (node.op == Op::kOr);
      return decided ? left : evaluate(*node.right, in);
    }
    case ExprKind::kConcat:
      return evaluate_concat(static_cast<const Sequence&>(expr), in);
    case ExprKind::kCompare:
      return evaluate_compare(static_cast<const Compare&>(expr), in);
    case ExprKind::kAttribute: {
      const auto& node = static_cast<const Attribute&>(expr);
      return get_attribute(sandbox_, evaluate(*node.object, in), node.name, node.method);
    }
    case ExprKind::kItem: {
      const auto& node = static_cast<const Item&>(expr);
      const Value object = evaluate(*node.object, in);
      return get_item(sandbox_, object, evaluate(*node.index, in));
    }
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const Slice&>(expr), in);
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return evaluate_apply(static_cast<const Apply&>(expr), in);
    case ExprKind::kCall:
      return evaluate_call(static_cast<const Call&>(expr), in, nullptr);
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const Conditional&>(expr), in);
    case ExprKind::kField:
      break;
  }
  fail("this can only be assigned to");
}

bool Interpreter::is_true(const Expr& expr, Activation& in) {
  return jinja::is_true(sandbox_, evaluate(expr, in));
}

Value Interpreter::load(const Name& name, const Activation& in) {
  const Activation* activation = &in;
  for (uint16_t hop = 0; hop < name.variable.hops; ++hop) activation = activation->outer;
  const Value& value = activation->slots[name.variable.slot];
  return value.missing() ? undefined_name(sandbox_, name.text) : value;
}

Value Interpreter::evaluate_dict(const DictDisplay& node, Activation& in) {
  Dict* dict = sandbox_.heap().make<Dict>();
  for (const auto& [key_node, value_node] : node.items) {
    const Value key = evaluate(*key_node, in);
    const Value value = evaluate(*value_node, in);
    if (!is_hashable(key)) fail("unhashable type: '", type_name(key), "'");
    dict->set(sandbox_.heap(), key, value);
  }
  return Value::of_dict(dict);
}

Value Interpreter::evaluate_concat(const Sequence& node, Activation& in) {
  TextBuilder text(sandbox_.heap());
  for (const ExprPtr& item : node.items) print(sandbox_, text, evaluate(*item, in));
  return Value(text.finish());
}

Value Interpreter::evaluate_compare(const Compare& node, Activation& in) {
  Value left = evaluate(*node.first, in);
  for (const auto& [op, operand] : node.rest) {
    const Value right = evaluate(*operand, in);
    if (!compare(sandbox_, op, left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

Value Interpreter::evaluate_slice(const Slice& node, Activation& in) {
  const auto part = [&](const ExprPtr& expr) {
    return expr == nullptr ? Value() : evaluate(*expr, in);
  };
  const Value object = evaluate(*node.object, in);
  const Value start = part(node.start);
  const Value stop = part(node.stop);
  return get_slice(sandbox_, object, start, stop, part(node.step));
}

Value Interpreter::evaluate_conditional(const Conditional& node, Activation& in) {
  if (is_true(*node.test, in)) return evaluate(*node.then, in);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise, in);
  return undefined_hint(sandbox_, "the inline if was false and had no else");
}

Value Interpreter::evaluate_apply(const Apply& node, Activation& in) {
  const Value operand = node.operand == nullptr ? Value(block_text_) : evaluate(*node.operand, in);
  const Arguments arguments = evaluate_arguments(node.arguments, in);
  if (node.native == nullptr) {
    const bool filter = node.kind == ExprKind::kFilter;
    fail("no ", filter ? "filter" : "test", " named '", node.name, "'");
  }
  return node.native->call(sandbox_, operand, arguments);
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& items, Activation& in) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExprPtr& item : items) values.push_back(evaluate(*item, in));
  return values;
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, Activation& in) {
  Arguments values;
  values.positional = evaluate_all(arguments.positional, in);
  if (arguments.star != nullptr) {
    for (const Value& item : to_vector(sandbox_, evaluate(*arguments.star, in))) {
      values.positional.push_back(item);
    }
  }
  for (const CallArguments::Named& named : arguments.named) {
    values.keywords.push_back({named.name, evaluate(*named.value, in)});
  }
  if (arguments.star_star != nullptr) {
    spread_keywords(evaluate(*arguments.star_star, in), values);
  }
  return values;
}

void Interpreter::spread_keywords(const Value& mapping, Arguments& arguments) {
  if (!mapping.is(Kind::kDict)) fail_type("** needs a mapping", mapping);
  for (const Dict::Entry& entry : *mapping.dict) {
    const std::string_view name = to_str(entry.key, "the name of an argument").view();
    for (const Keyword& other : arguments.keywords) {
      if (other.name == name) fail("argument '", printable(name), "' is given twice");
    }
    sandbox_.charge(1 + arguments.keywords.size());
    arguments.keywords.push_back({name, entry.value});
  }
}

void Interpreter::assign(const Expr& target, const Value& value, Activation& in) {
  const auto variable = [&in](const Variable& place) -> Value& {
    Activation* activation = &in;
    for (uint16_t hop = 0; hop < place.hops; ++hop) activation = activation->outer;
    return activation->slots[place.slot];
  };
  if (target.kind == ExprKind::kName) {
    variable(static_cast<const Name&>(target).variable) = value;
  } else if (target.kind == ExprKind::kField) {
    const auto& field = static_cast<const Field&>(target);
    const Value& object = variable(field.variable);
    if (!object.is(Kind::kNamespace)) fail("'", field.name, "' is not a namespace");
    object.dict->set(sandbox_.heap(), Value(field.attribute), value);
  } else {
    const auto& items = static_cast<const Sequence&>(target).items;
    const std::vector<Value> values = unpack(sandbox_, value, items.size());
    for (size_t i = 0; i < items.size(); ++i) assign(*items[i], values[i], in);
  }
}

}  // namespace tinyvllm::jinja
