// Calls. A macro is called as jinja2.runtime.Macro is: positional arguments fill the parameters,
// then keywords do, then defaults, evaluated in the macro; `caller`, `kwargs` and `varargs` take
// the rest.
#include <algorithm>

#include "text/template/interpreter.h"
#include "text/template/operators.h"

namespace tinyvllm::jinja {

Value Interpreter::evaluate_call(const Call& node, Activation& in, const Macro* caller) {
  const Value callee = evaluate(*node.callee, in);
  Arguments arguments = evaluate_arguments(node.arguments, in);
  if (caller != nullptr) arguments.keywords.push_back({"caller", Value(caller)});
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind) {
    case Kind::kUndefined:
      fail_undefined(callee);
    case Kind::kMacro:
      return call_macro(*callee.macro, arguments);
    case Kind::kFunction:
      return callee.function->call(sandbox_, Value(), arguments);
    case Kind::kMethod:
      return callee.method->native->call(sandbox_, callee.method->self, arguments);
    case Kind::kJoiner:
      expect_positional("joiner", arguments, 0, 0);
      if (callee.joiner->used) return callee.joiner->separator;
      callee.joiner->used = true;
      return new_text(sandbox_.heap(), "");
    case Kind::kLoop:
      fail("recursive loops are refused");
    default:
      fail("a value of type '", type_name(callee), "' cannot be called");
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  Activation* in = activate(macro.outer, macro.body->slots);
  bind_parameters(macro, arguments, *in);
  TextBuilder text(sandbox_.heap());
  TextBuilder* const outside = std::exchange(output_, &text);
  enter(macro.body->scope, *in);
  for (const MacroBody::Parameter& parameter : macro.body->parameters) {
    Value& value = in->slots[parameter.name->variable.slot];
    if (!value.missing()) continue;
    if (parameter.fallback != nullptr) {
      value = evaluate(*parameter.fallback, *in);
    } else {
      const std::string hint = str_cat("parameter '", parameter.name->name, "' was not provided");
      value = undefined_hint(sandbox_, sandbox_.heap().copy(hint));
    }
  }
  execute(macro.body->body, *in);
  output_ = outside;
  return Value(text.finish());
}

void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, Activation& in) {
  const MacroBody& body = *macro.body;
  const std::string_view name = body.name.empty() ? "caller" : std::string_view(body.name);
  std::vector<Keyword> keywords = arguments.keywords;
  const auto pop_keyword = [&keywords](std::string_view key) {
    const auto found = std::find_if(keywords.begin(), keywords.end(),
                                    [key](const Keyword& k) { return k.name == key; });
    if (found == keywords.end()) return Value();
    const Value value = found->value;
    keywords.erase(found);
    return value;
  };

  bool found_caller = false;
  const size_t given = std::min(arguments.positional.size(), body.parameters.size());
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    const Name& parameter = *body.parameters[i].name;
    in.slots[parameter.variable.slot] =
        i < given ? arguments.positional[i] : pop_keyword(parameter.name);
    found_caller |= i >= given && parameter.name == "caller";
  }
  if (given == body.parameters.size()) found_caller = body.explicit_caller;

  if (body.uses_caller && !found_caller) {
    Value caller = pop_keyword("caller");
    if (caller.missing() || caller.is(Kind::kNone)) {
      caller = undefined_hint(sandbox_, "no caller defined");
    }
    // A macro that names `caller` among its parameters got it there already, or too many arguments.
    if (!body.caller.has_value()) fail("macro '", name, "' takes no more arguments");
    in.slots[*body.caller] = caller;
  }
  if (body.kwargs.has_value()) {
    Dict* rest = sandbox_.heap().make<Dict>();
    for (const Keyword& keyword : keywords) {
      rest->set(sandbox_.heap(), new_text(sandbox_.heap(), keyword.name), keyword.value);
    }
    in.slots[*body.kwargs] = Value::of_dict(rest);
  } else if (!keywords.empty()) {
    fail("macro '", name, "' takes no argument '", printable(keywords[0].name), "'");
  }
  if (body.varargs.has_value()) {
    const std::vector<Value> rest(arguments.positional.begin() + static_cast<ptrdiff_t>(given),
                                  arguments.positional.end());
    in.slots[*body.varargs] = new_tuple(sandbox_.heap(), rest);
  } else if (arguments.positional.size() > given) {
    fail("macro '", name, "' takes not more than ", body.parameters.size(), " arguments");
  }
}

}  // namespace tinyvllm::jinja
