// Sections made of single records: what memory held, and what tracing cost.
#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;

Cell bytes_cell(double bytes) { return {human_bytes(bytes), bytes}; }

// Rows for every member of a scope, the largest first: "breakdown.attention" → "attention".
void add_scope(const Facts& facts, const std::string& scope, const std::string& what,
               TableSection& section) {
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [key, value] : facts) {
    if (key.starts_with(scope + ".") && fact(facts, key) > 0) {
      parts.emplace_back(fact(facts, key), key.substr(scope.size() + 1));
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [bytes, name] : parts) {
    section.rows.push_back({text_cell(what), text_cell(name), bytes_cell(bytes)});
  }
}

}  // namespace

const Facts& facts_of(const Trace& trace, std::string_view type) {
  static const Facts none;
  const Facts* found = trace.latest.find(type);
  return found == nullptr ? none : *found;
}

int64_t wall_ns(const Trace& trace) {
  const auto said = static_cast<int64_t>(1e3 * fact(facts_of(trace, "TraceEnded"), "wall_us"));
  return std::max(said, trace.last_ns - std::max<int64_t>(trace.first_ns, 0));
}

TableSection memory_table(const Trace& trace) {
  TableSection section{
      "Memory", {{"what", "what", kLeft}, {"part", "part", kLeft}, {"bytes", "size"}}, {}};
  const auto add = [&](const char* type, const char* key, const char* what, const char* part) {
    const Facts& facts = facts_of(trace, type);
    if (facts.contains(key)) {
      section.rows.push_back({text_cell(what), text_cell(part), bytes_cell(fact(facts, key))});
    }
  };
  add("GgufFileMmap", "size_bytes", "model file", "mapped");
  add("ModelWeights", "total_bytes", "weights", "all");
  add_scope(facts_of(trace, "ModelWeights"), "breakdown", "weights", section);
  add("HostMemory", "kv_allocated_bytes", "KV cache", "allocated");
  add("HostMemory", "kv_used_bytes", "KV cache", "in use at the end");
  const Facts& host = facts_of(trace, "HostMemory");
  add_scope(host, "pools", "pool", section);
  add_scope(host, "totals", "process", section);
  if (!host.contains("totals.resident")) add("HostMemory", "resident_bytes", "process", "resident");
  add("HostMemory", "peak_bytes", "process", "peak");
  add_scope(facts_of(trace, "ForwardStep"), "breakdown", "moved by the last step", section);
  const Facts& prefix = facts_of(trace, "PrefixCache");
  if (fact(prefix, "tokens_queried") > 0) {
    section.notes.push_back(str_cat(
        "prefix cache: ", fact(prefix, "tokens_hit"), " of ", fact(prefix, "tokens_queried"),
        " prompt tokens found (",
        percent_cell(fact(prefix, "tokens_hit"), fact(prefix, "tokens_queried")).text, ")"));
  }
  return section;
}

TableSection overhead_table(const Trace& trace) {
  TableSection section{"Tracing overhead", {}, {}};
  const Facts& facts = facts_of(trace, "TraceCalibration");
  if (facts.empty()) return section;
  const double percent = fact(facts, "overhead_percent");
  section.values = {{"overhead_percent", percent},
                    {"ns_per_record", fact(facts, "ns_per_record")},
                    {"records_per_step", fact(facts, "records_per_step")}};
  const Facts& started = facts_of(trace, "TraceStarted");
  const auto level = started.find("level");
  section.notes.push_back(
      str_cat("tracing", level == started.end() ? "" : " at level " + printable(level->second),
              " slowed this run by about ", number_cell(percent, 2).text, "% (",
              number_cell(fact(facts, "records_per_step"), 1).text, " records a step, ",
              number_cell(fact(facts, "ns_per_record"), 0).text, " ns each)"));
  return section;
}

}  // namespace tinyvllm
