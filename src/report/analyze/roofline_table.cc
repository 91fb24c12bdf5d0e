// What ops reached beside what the machine was measured to do, and the same for the two phases.
#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;

MachineLimits limits_of(const Trace& trace) {
  const Facts& facts = facts_of(trace, "MachineLimits");
  return {1e9 * fact(facts, "read_gb_per_s"), 1e9 * fact(facts, "gflop_per_s"),
          1e9 * fact(facts, "int8_gop_per_s")};
}

Cell or_nothing(double value, int decimals) {
  return value > 0 ? number_cell(value, decimals) : Cell{};
}

std::vector<Cell> roofline_row(const RooflineRow& row, double wall_seconds) {
  return {text_cell(row.op),
          text_cell(dtype_name(row.dtype)),
          text_cell(phase_name(row.phase)),
          number_cell(static_cast<double>(row.work.calls)),
          ms_cell(1e9 * row.work.seconds),
          percent_cell(row.work.seconds, wall_seconds),
          number_cell(row.gb_per_s, 2),
          number_cell(row.gflop_per_s, 2),
          or_nothing(row.limit_percent, 0),
          text_cell(bound_name(row.bound)),
          ms_cell(1e9 * row.limit_seconds)};
}

}  // namespace

RooflineTable roofline_of(const Trace& trace) {
  Roofline roofline;
  for (const auto& [key, cost] : trace.costs) {
    if (cost.bytes <= 0 && cost.flops <= 0) continue;
    roofline.add(cost.part, dtype_from_name(cost.dtype).value_or(DType::kF32),
                 cost.phase == "decode" ? Phase::kDecode : Phase::kPrefill,
                 {cost.calls, static_cast<double>(cost.ns) / 1e9, cost.bytes, cost.flops});
  }
  for (const auto& [number, step] : trace.steps) {
    roofline.add_wall(static_cast<double>(step.duration_ns) / 1e9);
  }
  return roofline.table(limits_of(trace));
}

TableSection roofline_table(const Trace& trace, size_t top) {
  TableSection section{"Roofline",
                       {{"op", "op", kLeft},
                        {"dtype", "dtype", kLeft},
                        {"phase", "phase", kLeft},
                        {"calls", "calls"},
                        {"time_ms", "ms"},
                        {"share_percent", "share"},
                        {"gb_per_s", "GB/s"},
                        {"gflop_per_s", "GFLOP/s"},
                        {"limit_percent", "% of limit"},
                        {"bound", "bound by", kLeft},
                        {"at_limit_ms", "ms at limit"}},
                       {}};
  const RooflineTable table = roofline_of(trace);
  if (table.rows.empty()) return section;
  for (const RooflineRow& row : table.rows) {
    if (section.rows.size() < top) section.rows.push_back(roofline_row(row, table.wall_seconds));
  }
  const double wall = table.wall_seconds, rest = table.unexplained_seconds();
  section.rows.push_back({text_cell("(no op explains)"),
                          {},
                          {},
                          {},
                          ms_cell(1e9 * rest),
                          percent_cell(rest, wall),
                          {},
                          {},
                          {},
                          {},
                          {}});
  section.rows.push_back({text_cell("(all steps)"),
                          {},
                          {},
                          {},
                          ms_cell(1e9 * wall),
                          percent_cell(wall, wall),
                          {},
                          {},
                          or_nothing(100 * table.limit_seconds / wall, 0),
                          {},
                          ms_cell(1e9 * table.limit_seconds)});
  section.values = {{"wall_ms", 1e3 * wall},
                    {"ops_ms", 1e3 * table.op_seconds},
                    {"at_limit_ms", 1e3 * table.limit_seconds}};
  const MachineLimits& limits = table.limits;
  if (limits.read_bytes_per_s > 0) {
    section.notes.push_back(str_cat(
        "measured limits: ", number_cell(limits.read_bytes_per_s / 1e9, 1).text, " GB/s, ",
        number_cell(limits.flops_per_s / 1e9, 1).text, " GFLOP/s, ",
        number_cell(limits.int8_ops_per_s / 1e9, 1).text, " int8 GOP/s; at the limit the steps' ",
        ms_cell(1e9 * wall).text, " ms would be ", ms_cell(1e9 * table.limit_seconds).text));
  }
  return section;
}

TableSection phase_table(const Trace& trace) {
  TableSection section{"Prefill / decode split",
                       {{"phase", "phase", kLeft},
                        {"steps", "steps"},
                        {"tokens", "tokens"},
                        {"time_ms", "ms"},
                        {"share_percent", "share"},
                        {"tokens_per_s", "tok/s"},
                        {"ops_ms", "ops ms"},
                        {"gb_per_s", "GB/s"},
                        {"gflop_per_s", "GFLOP/s"},
                        {"limit_percent", "% of limit"}},
                       {}};
  const RooflineTable table = roofline_of(trace);
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    double steps = 0, tokens = 0, ns = 0, ops = 0, bytes = 0, flops = 0, limit = 0;
    for (const auto& [number, step] : trace.steps) {
      if (is_prefill(step) != (phase == Phase::kPrefill) || step.duration_ns == 0) continue;
      ++steps;
      tokens += static_cast<double>(step.prefill_tokens + step.decode_tokens);
      ns += static_cast<double>(step.duration_ns);
      ops += static_cast<double>(step.op_ns);
    }
    for (const RooflineRow& row : table.rows) {
      if (row.phase != phase) continue;
      bytes += row.work.bytes;
      flops += row.work.flops;
      limit += row.limit_seconds;
    }
    if (steps == 0) continue;
    section.rows.push_back({text_cell(phase_name(phase)), number_cell(steps), number_cell(tokens),
                            ms_cell(ns), percent_cell(ns, 1e9 * table.wall_seconds),
                            number_cell(tokens / ns * 1e9, 1), ops > 0 ? ms_cell(ops) : Cell{},
                            or_nothing(bytes / ns, 2), or_nothing(flops / ns, 2),
                            or_nothing(100 * limit * 1e9 / ns, 0)});
  }
  if (!section.rows.empty()) {
    section.notes = {"a step with any prompt token counts as prefill, its decode tokens included"};
  }
  return section;
}

}  // namespace tinyvllm
