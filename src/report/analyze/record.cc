#include "report/analyze/record.h"

#include <charconv>
#include <cmath>
#include <simdjson.h>

namespace tinyvllm {
namespace {

namespace dom = simdjson::dom;

constexpr double kLongestUs = 1e12;  // eleven days: what is longer, or negative, is no duration

std::optional<int64_t> to_nanoseconds(double us) {
  if (!(us >= 0 && us <= kLongestUs)) return std::nullopt;
  return std::llround(us * 1000);
}

std::optional<int64_t> to_integer(double value) {
  if (!(std::abs(value) < 1e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

double to_number(const dom::element& value) {
  double number = 0;
  return value.get(number) == simdjson::SUCCESS ? number : std::nan("");
}

std::string_view to_text(const dom::element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

// Lists, and objects two levels below event.data, are passed over.
void read_fields(const dom::object& object, std::string_view scope, Fields& fields) {
  for (const auto [key, value] : object) {
    if (value.is_object() && scope.empty()) {
      read_fields(value.get_object().value_unsafe(), key, fields);
    } else if (value.is_number() || value.is_string()) {
      fields.add({scope, key, to_text(value), to_number(value)});
    } else if (value.is_bool()) {
      fields.add({scope, key, value.get_bool().value_unsafe() ? "true" : "false", std::nan("")});
    }
  }
}

bool read_record(const dom::element& line, Record& record) {
  dom::object root;
  if (line.get(root) != simdjson::SUCCESS) return false;
  for (const auto [key, value] : root) {
    if (key == "timestamp") record.timestamp_ns = to_nanoseconds(to_number(value)).value_or(0);
    if (key == "span_id") record.span_id = to_integer(to_number(value)).value_or(0);
    if (key == "parent_span_id") record.parent_span_id = to_integer(to_number(value)).value_or(0);
    if (key == "span_name") record.span_name = to_text(value);
    dom::object event;
    if (key != "event" || value.get(event) != simdjson::SUCCESS) continue;
    for (const auto [name, part] : event) {
      dom::object data;
      if (name == "type") record.type = to_text(part);
      if (name == "data" && part.get(data) == simdjson::SUCCESS) {
        read_fields(data, {}, record.data);
      }
    }
  }
  return !record.type.empty();
}

}  // namespace

const Fields::Field* Fields::find(std::string_view key, std::string_view scope) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const size_t at = next_ + i < fields_.size() ? next_ + i : next_ + i - fields_.size();
    const Field& field = fields_[at];
    if (field.key != key || field.scope != scope) continue;
    next_ = at + 1 < fields_.size() ? at + 1 : 0;
    return &field;
  }
  return nullptr;
}

std::string_view Fields::text(std::string_view key, std::string_view scope) const {
  const Field* field = find(key, scope);
  return field == nullptr ? std::string_view() : field->text;
}

std::optional<double> Fields::number(std::string_view key, std::string_view scope) const {
  const Field* field = find(key, scope);
  if (field == nullptr) return std::nullopt;
  if (!std::isnan(field->number)) return field->number;
  double value = 0;
  const char* end = field->text.data() + field->text.size();
  const auto [stop, problem] = std::from_chars(field->text.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

int64_t Fields::integer(std::string_view key, std::string_view scope, int64_t fallback) const {
  return to_integer(number(key, scope).value_or(std::nan(""))).value_or(fallback);
}

std::optional<int64_t> Fields::nanoseconds(std::string_view key, std::string_view scope) const {
  return to_nanoseconds(number(key, scope).value_or(-1));
}

void Fields::write(const Field& field, std::string& to) {
  if (std::isnan(field.number)) {
    to.append(field.text);
    return;
  }
  char text[32];
  const std::optional<int64_t> whole = to_integer(field.number);
  const auto end = whole && static_cast<double>(*whole) == field.number
                       ? std::to_chars(text, text + sizeof text, *whole)
                       : std::to_chars(text, text + sizeof text, field.number);
  to.append(text, end.ptr);
}

bool Fields::write(std::string_view key, std::string_view scope, std::string& to) const {
  const Field* field = find(key, scope);
  if (field != nullptr) write(*field, to);
  return field != nullptr;
}

struct RecordParser::State {
  dom::parser parser;
  Record record;
};

RecordParser::RecordParser() : state_(std::make_unique<State>()) {
  static_assert(kPadding >= simdjson::SIMDJSON_PADDING);
}
RecordParser::~RecordParser() = default;

const Record* RecordParser::parse(std::string_view line) {
  Record& record = state_->record;
  record.type = record.span_name = {};
  record.timestamp_ns = record.span_id = record.parent_span_id = 0;
  record.data.clear();
  dom::element root;
  const auto* bytes = reinterpret_cast<const uint8_t*>(line.data());
  if (state_->parser.parse(bytes, line.size(), false).get(root) != simdjson::SUCCESS) {
    return nullptr;
  }
  return read_record(root, record) ? &record : nullptr;
}

}  // namespace tinyvllm
