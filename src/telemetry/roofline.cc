#include "telemetry/roofline.h"

#include <algorithm>
#include <cstdio>

namespace tinyvllm {
namespace {

double per(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// Quantized weights meet activations as bytes (ops/cpu): their products are counted against the
// speed of byte products.
double compute_limit(const MachineLimits& limits, DType dtype) {
  return is_quantized(dtype) ? limits.int8_ops_per_s : limits.flops_per_s;
}

void hold_against(const MachineLimits& limits, RooflineRow& row) {
  const OpWork& work = row.work;
  row.gb_per_s = per(work.bytes, work.seconds) / 1e9;
  row.gflop_per_s = per(work.flops, work.seconds) / 1e9;
  if (limits.read_bytes_per_s <= 0 || compute_limit(limits, row.dtype) <= 0) return;
  const double memory = work.bytes / limits.read_bytes_per_s;
  const double compute = work.flops / compute_limit(limits, row.dtype);
  row.bound = memory > work.seconds ? Bound::kCache
              : memory >= compute   ? Bound::kMemory
                                    : Bound::kCompute;
  row.limit_seconds = row.bound == Bound::kMemory ? memory : compute;
  row.limit_percent = 100 * per(row.limit_seconds, work.seconds);
}

template <class... Values>
void print(std::string& text, const char* format, Values... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  text += line;
}

}  // namespace

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::kMemory:
      return "memory";
    case Bound::kCompute:
      return "compute";
    case Bound::kCache:
      return "cache";
    case Bound::kUnknown:
      return "";
  }
  return "";
}

void Roofline::add(std::string_view op, DType dtype, Phase phase, const OpWork& work) {
  OpWork& sum = work_[{std::string(op), dtype, phase}];
  sum.calls += work.calls;
  sum.seconds += work.seconds;
  sum.bytes += work.bytes;
  sum.flops += work.flops;
}

RooflineTable Roofline::table(const MachineLimits& limits) const {
  RooflineTable table;
  table.limits = limits;
  for (const auto& [key, work] : work_) {
    RooflineRow row;
    std::tie(row.op, row.dtype, row.phase) = key;
    row.work = work;
    hold_against(limits, row);
    table.op_seconds += work.seconds;
    table.limit_seconds += row.limit_seconds;
    table.rows.push_back(std::move(row));
  }
  table.wall_seconds = wall_seconds_ > 0 ? wall_seconds_ : table.op_seconds;
  for (RooflineRow& row : table.rows) row.share = per(row.work.seconds, table.wall_seconds);
  std::sort(table.rows.begin(), table.rows.end(), [](const RooflineRow& a, const RooflineRow& b) {
    return a.work.seconds > b.work.seconds;
  });
  return table;
}

std::string to_text(const RooflineTable& table) {
  std::string text;
  print(text, "%-20s %-6s %-8s %8s %10s %6s %8s %9s %6s %-8s %12s\n", "op", "dtype", "phase",
        "calls", "time", "share", "GB/s", "GFLOP/s", "limit", "bound by", "at the limit");
  for (const RooflineRow& row : table.rows) {
    print(text, "%-20s %-6s %-8s %8lld %7.2f ms %5.1f%% %8.2f %9.2f %5.0f%% %-8s %9.2f ms\n",
          row.op.c_str(), dtype_name(row.dtype), phase_name(row.phase),
          static_cast<long long>(row.work.calls), 1e3 * row.work.seconds, 100 * row.share,
          row.gb_per_s, row.gflop_per_s, row.limit_percent, bound_name(row.bound),
          1e3 * row.limit_seconds);
  }
  print(text, "%-45s %7.2f ms %5.1f%%\n", "no op explains", 1e3 * table.unexplained_seconds(),
        100 * per(table.unexplained_seconds(), table.wall_seconds));
  print(text, "%-45s %7.2f ms %5.1f%% %43.2f ms\n", "all", 1e3 * table.wall_seconds, 100.0,
        1e3 * table.limit_seconds);
  if (table.limits.read_bytes_per_s > 0) {
    print(text, "limits measured on this machine: %.1f GB/s, %.1f GFLOP/s, %.1f int8 GOP/s\n",
          table.limits.read_bytes_per_s / 1e9, table.limits.flops_per_s / 1e9,
          table.limits.int8_ops_per_s / 1e9);
  }
  return text;
}

}  // namespace tinyvllm
