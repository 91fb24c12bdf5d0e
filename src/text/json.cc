#include "text/json.h"

#include <bit>
#include <cmath>
#include <simdjson.h>
#include <type_traits>

namespace tinyvllm {
namespace {

using Element = simdjson::dom::element;
static_assert(sizeof(Element) == 16 && std::is_trivially_copyable_v<Element>);

Element element_of(const std::array<uint64_t, 2>& handle) { return std::bit_cast<Element>(handle); }
std::array<uint64_t, 2> handle_of(Element element) {
  return std::bit_cast<std::array<uint64_t, 2>>(element);
}

const char* name_of(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBoolean:
      return "a boolean";
    case Json::Kind::kNumber:
      return "a number";
    case Json::Kind::kString:
      return "a string";
    case Json::Kind::kArray:
      return "an array";
    case Json::Kind::kObject:
      return "an object";
  }
  return "";
}

// simdjson refuses integers of more than 64 bits, which Python writes happily ("model_max_length":
// 1000000000000000019884624838656). The same text with those as floating-point numbers.
std::string with_long_integers_as_floats(std::string_view text) {
  constexpr size_t kLongest = 18;  // digits that always fit
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (in_string && text[at] == '\\' && at + 1 < text.size()) {
      out += text[++at];
      continue;
    }
    if (text[at] == '"') in_string = !in_string;
    if (in_string || !is_digit(text[at])) continue;
    const size_t begin = at;
    while (at + 1 < text.size() && is_digit(text[at + 1])) out += text[++at];
    const bool is_part =
        begin > 0 && std::string_view(".eE+").find(text[begin - 1]) != std::string_view::npos;
    const bool goes_on = at + 1 < text.size() &&
                         std::string_view(".eE").find(text[at + 1]) != std::string_view::npos;
    if (at + 1 - begin > kLongest && !is_part && !goes_on) out += ".0";
  }
  return out;
}

std::string child_path(const std::string& path, std::string_view key) {
  return str_cat(path, path.ends_with(": ") ? "" : ".", printable(key));
}

}  // namespace

Json::Kind Json::kind() const {
  switch (element_of(element_).type()) {
    case simdjson::dom::element_type::ARRAY:
      return Kind::kArray;
    case simdjson::dom::element_type::OBJECT:
      return Kind::kObject;
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
    case simdjson::dom::element_type::DOUBLE:
      return Kind::kNumber;
    case simdjson::dom::element_type::STRING:
      return Kind::kString;
    case simdjson::dom::element_type::BOOL:
      return Kind::kBoolean;
    case simdjson::dom::element_type::NULL_VALUE:
      return Kind::kNull;
  }
  return Kind::kNull;
}

Error Json::wrong(std::string_view expected) const {
  const bool is_root = path_.ends_with(": ");
  return error(path_, is_root ? "expected " : ": expected ", expected, ", found ", name_of(kind()));
}

std::optional<Json> Json::find(std::string_view key) const {
  Element found;
  if (element_of(element_).at_key(key).get(found) != simdjson::SUCCESS) return std::nullopt;
  if (found.is_null()) return std::nullopt;
  return Json(handle_of(found), child_path(path_, key));
}

Result<Json> Json::field(std::string_view key) const {
  if (kind() != Kind::kObject) return wrong("an object");
  std::optional<Json> found = find(key);
  if (!found.has_value()) return error(child_path(path_, key), ": missing");
  return *found;
}

Result<std::vector<Json>> Json::items() const {
  simdjson::dom::array array;
  if (element_of(element_).get(array) != simdjson::SUCCESS) return wrong("an array");
  std::vector<Json> items;
  for (const Element item : array) {
    items.push_back(Json(handle_of(item), str_cat(path_, "[", items.size(), "]")));
  }
  return items;
}

Result<std::string_view> Json::string() const {
  std::string_view text;
  if (element_of(element_).get(text) != simdjson::SUCCESS) return wrong("a string");
  return text;
}

Result<int64_t> Json::integer() const {
  int64_t value = 0;
  if (element_of(element_).get(value) != simdjson::SUCCESS) return wrong("an integer");
  return value;
}

Result<double> Json::number() const {
  double value = 0;
  if (element_of(element_).get(value) != simdjson::SUCCESS) return wrong("a number");
  return value;
}

Result<bool> Json::boolean() const {
  bool value = false;
  if (element_of(element_).get(value) != simdjson::SUCCESS) return wrong("a boolean");
  return value;
}

Result<std::string_view> Json::string_field(std::string_view key) const {
  TRY_ASSIGN(const Json value, field(key));
  return value.string();
}

Result<bool> Json::boolean_field(std::string_view key) const {
  TRY_ASSIGN(const Json value, field(key));
  return value.boolean();
}

Result<bool> Json::boolean_field_or(std::string_view key, bool fallback) const {
  const std::optional<Json> value = find(key);
  if (!value.has_value()) return fallback;
  return value->boolean();
}

Result<size_t> Json::size() const {
  simdjson::dom::array array;
  simdjson::dom::object object;
  // simdjson keeps counts up to 2^24 - 1; none of ours may be larger.
  if (element_of(element_).get(array) == simdjson::SUCCESS) return array.size();
  if (element_of(element_).get(object) == simdjson::SUCCESS) return object.size();
  return wrong("an array or an object");
}

Status Json::for_each_field(
    const std::function<Status(std::string_view key, const Json&)>& visit) const {
  simdjson::dom::object object;
  if (element_of(element_).get(object) != simdjson::SUCCESS) return wrong("an object");
  Json value(element_, path_);
  for (const simdjson::dom::key_value_pair pair : object) {
    value.element_ = handle_of(pair.value);
    TRY(visit(pair.key, value));
  }
  return Status();
}

Status Json::for_each_item(const std::function<Status(size_t index, const Json&)>& visit) const {
  simdjson::dom::array array;
  if (element_of(element_).get(array) != simdjson::SUCCESS) return wrong("an array");
  Json value(element_, path_);
  size_t index = 0;
  for (const Element item : array) {
    value.element_ = handle_of(item);
    TRY(visit(index++, value));
  }
  return Status();
}

struct JsonDocument::Parsed {
  simdjson::dom::parser parser;
  Element root;
};

JsonDocument::JsonDocument(std::unique_ptr<Parsed> parsed, std::string name)
    : parsed_(std::move(parsed)), name_(std::move(name)) {}
JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string name) {
  auto parsed = std::make_unique<Parsed>();
  const simdjson::padded_string padded(text);
  simdjson::error_code code = parsed->parser.parse(padded).get(parsed->root);
  if (code == simdjson::NUMBER_ERROR) {
    const simdjson::padded_string again(with_long_integers_as_floats(text));
    code = parsed->parser.parse(again).get(parsed->root);
  }
  if (code != simdjson::SUCCESS) {
    return error(name, ": not JSON: ", simdjson::error_message(code));
  }
  return JsonDocument(std::move(parsed), std::move(name));
}

Json JsonDocument::root() const { return Json(handle_of(parsed_->root), name_ + ": "); }

}  // namespace tinyvllm
