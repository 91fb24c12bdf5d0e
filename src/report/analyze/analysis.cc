#include "report/analyze/analysis.h"

#include <charconv>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

std::vector<std::string> head_of(const Trace& trace) {
  std::vector<std::string> head = {str_cat("Total events: ", trace.events)};
  if (trace.parts.size() > 1) head.push_back(str_cat("Parts: ", trace.parts.size()));
  const ScanCounts& counts = trace.counts;
  const int64_t broken = counts.broken - (counts.truncated_end ? 1 : 0);
  if (broken > 0) {
    head.push_back(str_cat("Broken lines: ", broken, " (the first at byte ", counts.first_broken,
                           "), passed over"));
  }
  if (counts.truncated_end) {
    head.push_back("Truncated: the last line is incomplete, so the writer was cut off");
  }
  std::string unknown;
  for (const auto& [name, type] : trace.types) {
    if (!type.known) {
      unknown += str_cat(unknown.empty() ? "" : ", ", printable(name), " (", type.count, ")");
    }
  }
  if (!unknown.empty()) head.push_back(str_cat("Unknown event types: ", unknown));
  if (trace.dropped > 0) {
    head.push_back(str_cat("Dropped records: ", trace.dropped, ", so counts and sums fall short"));
  }
  return head;
}

}  // namespace

Analysis analyze(const std::string& path, const Trace& trace, const AnalyzeOptions& options) {
  return {path,
          head_of(trace),
          kernel_sections(trace, options),
          {roofline_table(trace, options.top), phase_table(trace), steps_table(trace, options.top),
           requests_table(trace, options.top), memory_table(trace), unexplained_table(trace),
           overhead_table(trace)}};
}

std::string to_text(const Analysis& analysis) {
  std::string text = str_cat("\n=== Analyzing ", printable(analysis.path, 4096), " ===\n");
  for (const std::string& line : analysis.head) text.append(line).append("\n");
  for (const StatSection& section : analysis.kernels) text.append("\n").append(to_text(section));
  for (const TableSection& section : analysis.tables) text.append("\n").append(to_text(section));
  return text;
}

std::string to_json(const Analysis& analysis, const Trace& trace) {
  JsonWriter json;
  json.begin_object().field("path", analysis.path).field("total_events", trace.events);
  json.field("lines", trace.counts.lines).field("broken_lines", trace.counts.broken);
  json.field("truncated", trace.counts.truncated_end).field("dropped_records", trace.dropped);
  json.key("unknown_types").begin_object();
  for (const auto& [name, type] : trace.types) {
    if (!type.known) json.field(name, type.count);
  }
  json.end_object();
  json.key("facts").begin_object();  // the last record of each type of which one says it all
  for (const auto& [type, facts] : trace.latest) {
    json.key(type).begin_object();
    for (const auto& [key, value] : facts) {
      json.key(key);
      double number = 0;
      const char* end = value.data() + value.size();
      const bool is_number =
          std::from_chars(value.data(), end, number).ptr == end && !value.empty();
      is_number ? json.value(number) : json.value(value);
    }
    json.end_object();
  }
  json.end_object();
  for (const StatSection& section : analysis.kernels) to_json(section, json);
  for (const TableSection& section : analysis.tables) to_json(section, json);
  return json.end_object().str();
}

}  // namespace tinyvllm
