// Expressions, from the loosest binding to the tightest: conditional, or, and, not, comparison, +
// -,
// ~, * / // %, **, signs, then primaries with what follows them. As in Jinja2, ** groups to the
// left and a sign binds tighter than ** but looser than a subscript.
#include "text/template/parser.h"

namespace tinyvllm::jinja {
namespace {

std::optional<Op> comparison(Tok kind) {
  switch (kind) {
    case Tok::kEq:
      return Op::kEq;
    case Tok::kNe:
      return Op::kNe;
    case Tok::kLt:
      return Op::kLt;
    case Tok::kLe:
      return Op::kLe;
    case Tok::kGt:
      return Op::kGt;
    case Tok::kGe:
      return Op::kGe;
    default:
      return std::nullopt;
  }
}

std::optional<Op> product(Tok kind) {
  switch (kind) {
    case Tok::kMul:
      return Op::kMul;
    case Tok::kDiv:
      return Op::kDiv;
    case Tok::kFloorDiv:
      return Op::kFloorDiv;
    case Tok::kMod:
      return Op::kMod;
    default:
      return std::nullopt;
  }
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

}  // namespace

ExprPtr Parser::binary(ExprKind kind, Op op, ExprPtr left, ExprPtr right) const {
  auto node = std::make_unique<Binary>(kind);
  node->op = op;
  node->at = left->at;
  node->begin = left->begin;
  attach(*node, node->left, std::move(left));
  attach(*node, node->right, std::move(right));
  return finish(std::move(node));
}

// One expression, or several with commas between them, which make a tuple.
ExprPtr Parser::parse_tuple(TupleMode mode, std::string_view end_name, bool in_parentheses) {
  auto tuple = begin<Sequence>(current(), ExprKind::kTuple);
  bool comma = false;
  while (true) {
    const bool over = at(Tok::kVariableEnd) || at(Tok::kBlockEnd) || at(Tok::kRightParen) ||
                      (!end_name.empty() && at_name(end_name));
    if (over) break;
    ExprPtr item = mode == kTarget || mode == kTargetOrField
                       ? parse_primary(mode == kTargetOrField)
                       : parse_expression(mode != kNoConditional);
    attach(*tuple, tuple->items.emplace_back(), std::move(item));
    if (!take_if(Tok::kComma)) break;
    comma = true;
  }
  if (!comma && !tuple->items.empty()) return std::move(tuple->items[0]);
  if (!comma && !in_parentheses) {
    fail_at(current(), "expected an expression, found '", describe(current()), "'");
  }
  return finish(std::move(tuple));
}

ExprPtr Parser::parse_target(bool fields, Name::Use use, std::string_view end_name) {
  const Token& start = current();
  ExprPtr target = parse_tuple(fields ? kTargetOrField : kTarget, end_name);
  make_target(*target, use, start);
  return target;
}

std::unique_ptr<Name> Parser::parse_target_name(Name::Use use) {
  const Token& token = expect(Tok::kName);
  if (is_constant_name(token.text)) fail_at(token, "can't assign to '", token.text, "'");
  auto node = begin<Name>(token);
  node->name = token.text;
  node->text = make_str(heap_, token.text, Origin::kTemplate);
  node->use = use;
  node->end = token.end;
  return node;
}

// Turns an expression that was read into the target of an assignment.
void Parser::make_target(Expr& target, Name::Use use, const Token& start) const {
  if (target.kind == ExprKind::kName) {
    static_cast<Name&>(target).use = use;
  } else if (target.kind == ExprKind::kTuple) {
    for (ExprPtr& item : static_cast<Sequence&>(target).items) make_target(*item, use, start);
  } else if (target.kind != ExprKind::kField) {
    fail_at(start, "can't assign to this expression");
  }
}

ExprPtr Parser::parse_expression(bool conditional) {
  if (conditional) return parse_conditional();
  const Level level(*this);
  return parse_or();
}

ExprPtr Parser::parse_conditional() {
  const Level level(*this);
  ExprPtr value = parse_or();
  while (take_name_if("if")) {
    auto node = std::make_unique<Conditional>();
    node->at = value->at;
    node->begin = value->begin;
    attach(*node, node->then, std::move(value));
    attach(*node, node->test, parse_or());
    if (take_name_if("else")) attach(*node, node->otherwise, parse_conditional());
    value = finish(std::move(node));
  }
  return value;
}

ExprPtr Parser::parse_or() {
  ExprPtr left = parse_and();
  while (take_name_if("or")) left = binary(ExprKind::kLogic, Op::kOr, std::move(left), parse_and());
  return left;
}

ExprPtr Parser::parse_and() {
  ExprPtr left = parse_not();
  while (take_name_if("and")) {
    left = binary(ExprKind::kLogic, Op::kAnd, std::move(left), parse_not());
  }
  return left;
}

ExprPtr Parser::parse_not() {
  if (!at_name("not")) return parse_compare();
  const Level level(*this);
  auto node = begin<Unary>(take());
  node->op = Op::kNot;
  attach(*node, node->operand, parse_not());
  return finish(std::move(node));
}

// The operator of a comparison, if one comes next; taken.
std::optional<Op> Parser::take_comparison() {
  if (const std::optional<Op> op = comparison(current().kind)) {
    take();
    return op;
  }
  if (take_name_if("in")) return Op::kIn;
  if (!at_name("not") || ahead().kind != Tok::kName || ahead().text != "in") return std::nullopt;
  take();
  take();
  return Op::kNotIn;
}

ExprPtr Parser::parse_compare() {
  ExprPtr first = parse_sum();
  std::optional<Op> op = take_comparison();
  if (!op.has_value()) return first;
  auto node = std::make_unique<Compare>();
  node->at = first->at;
  node->begin = first->begin;
  attach(*node, node->first, std::move(first));
  for (; op.has_value(); op = take_comparison()) {
    attach(*node, node->rest.emplace_back(*op, nullptr).second, parse_sum());
  }
  return finish(std::move(node));
}

ExprPtr Parser::parse_sum() {
  ExprPtr left = parse_concat();
  while (at(Tok::kAdd) || at(Tok::kSub)) {
    const Op op = take().kind == Tok::kAdd ? Op::kAdd : Op::kSub;
    left = binary(ExprKind::kBinary, op, std::move(left), parse_concat());
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  ExprPtr first = parse_product();
  if (!at(Tok::kTilde)) return first;
  auto node = std::make_unique<Sequence>(ExprKind::kConcat);
  node->at = first->at;
  node->begin = first->begin;
  attach(*node, node->items.emplace_back(), std::move(first));
  while (take_if(Tok::kTilde)) attach(*node, node->items.emplace_back(), parse_product());
  return finish(std::move(node));
}

ExprPtr Parser::parse_product() {
  ExprPtr left = parse_power();
  while (const std::optional<Op> op = product(current().kind)) {
    take();
    left = binary(ExprKind::kBinary, *op, std::move(left), parse_power());
  }
  return left;
}

ExprPtr Parser::parse_power() {
  ExprPtr left = parse_unary();
  while (take_if(Tok::kPow)) {
    left = binary(ExprKind::kBinary, Op::kPow, std::move(left), parse_unary());
  }
  return left;
}

ExprPtr Parser::parse_unary(bool filters) {
  ExprPtr node;
  if (at(Tok::kSub) || at(Tok::kAdd)) {
    const Level level(*this);
    const Token& sign = take();
    auto unary = begin<Unary>(sign);
    unary->op = sign.kind == Tok::kSub ? Op::kNeg : Op::kPos;
    attach(*unary, unary->operand, parse_unary(false));
    node = finish(std::move(unary));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr Parser::parse_primary(bool fields) {
  const Token& token = current();
  switch (token.kind) {
    case Tok::kName:
      return parse_name(fields);
    case Tok::kString:
      return parse_string();
    case Tok::kInteger:
      take();
      return literal(token, Value(token.integer));
    case Tok::kFloat:
      take();
      return literal(token, Value(token.number));
    case Tok::kLeftParen: {
      take();
      ExprPtr inside = parse_tuple(kFull, {}, /*in_parentheses=*/true);
      expect(Tok::kRightParen);
      inside->at = token.at;
      inside->begin = token.begin;
      return finish(std::move(inside));
    }
    case Tok::kLeftBracket:
      return parse_list();
    case Tok::kLeftBrace:
      return parse_dict();
    default:
      fail_at(token, "unexpected '", describe(token), "'");
  }
}

ExprPtr Parser::parse_name(bool fields) {
  const Token& token = take();
  if (token.text == "true" || token.text == "True") return literal(token, Value(true));
  if (token.text == "false" || token.text == "False") return literal(token, Value(false));
  if (token.text == "none" || token.text == "None") return literal(token, Value::none());
  if (fields && take_if(Tok::kDot)) {
    auto field = begin<Field>(token);
    field->name = token.text;
    field->attribute = make_str(heap_, expect(Tok::kName).text, Origin::kTemplate);
    return finish(std::move(field));
  }
  auto name = begin<Name>(token);
  name->name = token.text;
  name->text = make_str(heap_, token.text, Origin::kTemplate);
  return finish(std::move(name));
}

// Adjacent literals are one.
ExprPtr Parser::parse_string() {
  const Token& token = current();
  std::string text;
  while (at(Tok::kString)) text += take().text;
  return finish(literal(token, new_text(heap_, text)));
}

ExprPtr Parser::parse_list() {
  auto list = begin<Sequence>(expect(Tok::kLeftBracket), ExprKind::kList);
  while (!at(Tok::kRightBracket)) {
    if (!list->items.empty()) expect(Tok::kComma);
    if (at(Tok::kRightBracket)) break;
    attach(*list, list->items.emplace_back(), parse_expression());
  }
  expect(Tok::kRightBracket);
  return finish(std::move(list));
}

ExprPtr Parser::parse_dict() {
  auto dict = begin<DictDisplay>(expect(Tok::kLeftBrace));
  while (!at(Tok::kRightBrace)) {
    if (!dict->items.empty()) expect(Tok::kComma);
    if (at(Tok::kRightBrace)) break;
    auto& [key, value] = dict->items.emplace_back();
    attach(*dict, key, parse_expression());
    expect(Tok::kColon);
    attach(*dict, value, parse_expression());
  }
  expect(Tok::kRightBrace);
  return finish(std::move(dict));
}

}  // namespace tinyvllm::jinja
