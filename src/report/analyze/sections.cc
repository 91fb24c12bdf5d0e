#include "report/analyze/sections.h"

#include <cctype>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace tinyvllm {
namespace {

std::string fixed(double value, int decimals, const char* unit = "") {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, unit);
  return text;
}

std::string line_text(const StatLine& line, int indent) {
  const std::string head =
      str_cat(std::string(static_cast<size_t>(indent), ' '), printable(line.name, 400), ":");
  if (line.count) return str_cat(head, " count=", *line.count, "\n");
  if (line.inner.empty()) return str_cat(head, " ", to_line(line.stats), "\n");
  std::string text = head + "\n";
  for (const StatLine& inner : line.inner) text += line_text(inner, indent + 2);
  return text;
}

void line_json(const StatLine& line, JsonWriter& json) {
  json.begin_object().field("name", line.name);
  if (line.count) {
    json.field("count", *line.count);
  } else if (!line.inner.empty()) {
    json.key("lines").begin_array();
    for (const StatLine& inner : line.inner) line_json(inner, json);
    json.end_array();
  } else {
    const Stats& s = line.stats;
    json.field("count", s.count).field("total_ms", static_cast<double>(s.total_ns) / 1e6);
    json.field("avg_ms", s.avg_ns / 1e6).field("min_ms", s.min_ns / 1e6);
    json.field("max_ms", s.max_ns / 1e6).field("p50_ms", s.p50_ns / 1e6);
    json.field("p95_ms", s.p95_ns / 1e6).field("p99_ms", s.p99_ns / 1e6);
  }
  json.end_object();
}

std::string indented(const std::string& text) {
  std::string out;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
    if (end - from > 1) out += "  " + text.substr(from, end - from);
    from = end;
  }
  return out;
}

}  // namespace

Cell text_cell(std::string_view text) { return {printable(text, 120)}; }
Cell number_cell(double value, int decimals) { return {fixed(value, decimals), value}; }
Cell ms_cell(double ns, int decimals) { return {fixed(ns / 1e6, decimals), ns / 1e6}; }
Cell percent_cell(double part, double whole) {
  if (!(whole > 0)) return {};
  return {fixed(100 * part / whole, 1, "%"), 100 * part / whole};
}

std::string to_text(const StatSection& section) {
  std::string text = section.title + ":\n";
  if (section.lines.empty()) text += "  no samples\n";
  for (const StatLine& line : section.lines) text += line_text(line, 2);
  return text;
}

Table to_table(const TableSection& section) {
  Table table;
  for (const auto& column : section.columns) table.columns.push_back({column.name, column.align});
  for (const auto& row : section.rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const Cell& cell : row) cells.push_back(cell.text);
  }
  return table;
}

std::string to_text(const TableSection& section) {
  std::string text = section.title + ":\n";
  if (section.rows.empty() && section.notes.empty()) return text + "  no samples\n";
  if (!section.rows.empty()) text += indented(to_text(Block(to_table(section))));
  for (const std::string& note : section.notes) text += str_cat("  ", note, "\n");
  return text;
}

void to_json(const StatSection& section, JsonWriter& json) {
  json.key(json_key(section.title)).begin_array();
  for (const StatLine& line : section.lines) line_json(line, json);
  json.end_array();
}

void to_json(const TableSection& section, JsonWriter& json) {
  json.key(json_key(section.title)).begin_object();
  for (const auto& [name, value] : section.values) json.field(name, value);
  json.key("rows").begin_array();
  for (const auto& row : section.rows) {
    json.begin_object();
    for (size_t c = 0; c < row.size(); ++c) {
      json.key(section.columns[c].key);
      row[c].number ? json.value(*row[c].number) : json.value(row[c].text);
    }
    json.end_object();
  }
  json.end_array().field("notes", section.notes).end_object();
}

std::string json_key(std::string_view title) {
  std::string key;
  for (const char c : title) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !key.empty() && key.back() != '_') key += '_';
  }
  while (!key.empty() && key.back() == '_') key.pop_back();
  return key;
}

}  // namespace tinyvllm
