// What may follow a primary expression: attributes, subscripts, calls, filters and tests.
#include "text/template/parser.h"

namespace tinyvllm::jinja {

ExprPtr Parser::parse_postfix(ExprPtr node) {
  while (true) {
    if (at(Tok::kDot)) {
      node = parse_attribute(std::move(node));
    } else if (at(Tok::kLeftBracket)) {
      node = parse_subscript(std::move(node));
    } else if (at(Tok::kLeftParen)) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (at(Tok::kPipe)) {
      node = parse_filter(std::move(node), /*after_pipe=*/false);
    } else if (at_name("is")) {
      node = parse_test(std::move(node));
    } else if (at(Tok::kLeftParen)) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

// object.name, and object.0 for object[0].
ExprPtr Parser::parse_attribute(ExprPtr object) {
  expect(Tok::kDot);
  const Token& token = take();
  if (token.kind == Tok::kInteger) {
    auto item = std::make_unique<Item>();
    item->at = object->at;
    item->begin = object->begin;
    attach(*item, item->object, std::move(object));
    attach(*item, item->index, literal(token, Value(token.integer)));
    return finish(std::move(item));
  }
  if (token.kind != Tok::kName) fail_at(token, "expected a name or number after '.'");
  auto attribute = std::make_unique<Attribute>();
  attribute->at = object->at;
  attribute->begin = object->begin;
  attach(*attribute, attribute->object, std::move(object));
  attribute->name = make_str(heap_, token.text, Origin::kTemplate);
  return finish(std::move(attribute));
}

ExprPtr Parser::parse_subscript(ExprPtr object) {
  const Token& open = expect(Tok::kLeftBracket);
  if (at(Tok::kColon)) return parse_slice(std::move(object), nullptr, open);
  auto tuple = begin<Sequence>(open, ExprKind::kTuple);
  while (!at(Tok::kRightBracket)) {
    if (!tuple->items.empty()) expect(Tok::kComma);
    ExprPtr index = parse_expression();
    if (at(Tok::kColon)) {
      if (!tuple->items.empty()) fail_at(current(), "a slice cannot be part of a tuple");
      return parse_slice(std::move(object), std::move(index), open);
    }
    attach(*tuple, tuple->items.emplace_back(), std::move(index));
  }
  expect(Tok::kRightBracket);
  auto item = std::make_unique<Item>();
  item->at = object->at;
  item->begin = object->begin;
  attach(*item, item->object, std::move(object));
  attach(*item, item->index,
         tuple->items.size() == 1 ? std::move(tuple->items[0]) : finish(std::move(tuple)));
  return finish(std::move(item));
}

// From the first colon on.
ExprPtr Parser::parse_slice(ExprPtr object, ExprPtr start, const Token& first) {
  auto slice = std::make_unique<Slice>();
  slice->at = object->at;
  slice->begin = object->begin;
  attach(*slice, slice->object, std::move(object));
  if (start != nullptr) attach(*slice, slice->start, std::move(start));
  for (ExprPtr* part : {&slice->stop, &slice->step}) {
    if (!take_if(Tok::kColon)) break;
    if (!at(Tok::kColon) && !at(Tok::kRightBracket) && !at(Tok::kComma)) {
      attach(*slice, *part, parse_expression());
    }
  }
  if (at(Tok::kComma)) fail_at(first, "a slice cannot be part of a tuple");
  expect(Tok::kRightBracket);
  return finish(std::move(slice));
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  auto call = std::make_unique<Call>();
  call->at = callee->at;
  call->begin = callee->begin;
  attach(*call, call->callee, std::move(callee));
  parse_arguments(*call, call->arguments);
  return finish(std::move(call));
}

// A chain of filters. The operand is null for the text of a block.
ExprPtr Parser::parse_filter(ExprPtr operand, bool after_pipe) {
  while (after_pipe || at(Tok::kPipe)) {
    if (!after_pipe) take();
    after_pipe = false;
    auto filter = begin<Apply>(current(), ExprKind::kFilter);
    if (operand != nullptr) {
      filter->begin = operand->begin;
      attach(*filter, filter->operand, std::move(operand));
    }
    filter->name = parse_dotted_name();
    if (at(Tok::kLeftParen)) parse_arguments(*filter, filter->arguments);
    operand = finish(std::move(filter));
  }
  return operand;
}

ExprPtr Parser::parse_test(ExprPtr operand) {
  expect_name("is");
  const bool negated = take_name_if("not");
  auto test = begin<Apply>(current(), ExprKind::kTest);
  test->begin = operand->begin;
  attach(*test, test->operand, std::move(operand));
  test->name = parse_dotted_name();
  const bool argument = at(Tok::kName) || at(Tok::kString) || at(Tok::kInteger) ||
                        at(Tok::kFloat) || at(Tok::kLeftBracket) || at(Tok::kLeftBrace);
  if (at(Tok::kLeftParen)) {
    parse_arguments(*test, test->arguments);
  } else if (argument && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail_at(current(), "tests cannot be chained with 'is'");
    attach(*test, test->arguments.positional.emplace_back(), parse_postfix(parse_primary()));
  }
  ExprPtr result = finish(std::move(test));
  if (!negated) return result;
  auto inverse = std::make_unique<Unary>();
  inverse->op = Op::kNot;
  inverse->at = result->at;
  inverse->begin = result->begin;
  attach(*inverse, inverse->operand, std::move(result));
  return finish(std::move(inverse));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect(Tok::kName).text;
  while (take_if(Tok::kDot)) name += "." + expect(Tok::kName).text;
  return name;
}

void Parser::parse_arguments(Expr& parent, CallArguments& arguments) {
  const Token& open = expect(Tok::kLeftParen);
  const auto ensure = [&](bool right) {
    if (!right) fail_at(open, "invalid order of arguments in a call");
  };
  bool more = false;
  while (!at(Tok::kRightParen)) {
    if (more) {
      expect(Tok::kComma);
      if (at(Tok::kRightParen)) break;
    }
    more = true;
    if (take_if(Tok::kMul)) {
      ensure(arguments.star == nullptr && arguments.star_star == nullptr);
      attach(parent, arguments.star, parse_expression());
    } else if (take_if(Tok::kPow)) {
      ensure(arguments.star_star == nullptr);
      attach(parent, arguments.star_star, parse_expression());
    } else if (at(Tok::kName) && ahead().kind == Tok::kAssign) {
      ensure(arguments.star_star == nullptr);
      const Token& name = take();
      take();
      for (const CallArguments::Named& other : arguments.named) {
        if (other.name == name.text) fail_at(name, "argument '", name.text, "' is given twice");
      }
      arguments.named.push_back({name.text, nullptr});
      attach(parent, arguments.named.back().value, parse_expression());
    } else {
      ensure(arguments.star == nullptr && arguments.star_star == nullptr &&
             arguments.named.empty());
      attach(parent, arguments.positional.emplace_back(), parse_expression());
    }
  }
  expect(Tok::kRightParen);
}

}  // namespace tinyvllm::jinja
