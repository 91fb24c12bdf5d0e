#include "report/serve_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

bool keeps(const ServedRequest& request, const Slo& slo) {
  const std::map<std::string, double> seen = {
      {"ttft", request.ttft_s}, {"tpot", request.tpot_s()}, {"e2el", request.e2e_s}};
  return std::all_of(slo.begin(), slo.end(), [&](const auto& bound) {
    const auto value = seen.find(bound.first);
    return value != seen.end() && 1e3 * value->second <= bound.second;
  });
}

// The most requests that were under way at one time.
int peak_concurrent(const std::vector<ServedRequest>& requests) {
  std::vector<std::pair<double, int>> changes;
  for (const ServedRequest& r : requests) {
    changes.emplace_back(r.start_s, 1);
    changes.emplace_back(r.start_s + r.e2e_s, -1);
  }
  std::sort(changes.begin(), changes.end());  // an end before a beginning at the same time
  int now = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
  return peak;
}

double peak_rate(const std::vector<ServedRequest>& requests) {
  std::map<int64_t, double> tokens;  // by second
  for (const ServedRequest& r : requests) {
    if (!r.ok) continue;
    double time = r.start_s + r.ttft_s;
    const double pieces = static_cast<double>(r.gaps_s.size() + 1);
    const double each = r.tokens / pieces;  // a piece may hold several
    tokens[static_cast<int64_t>(time)] += each;
    for (const double gap : r.gaps_s) tokens[static_cast<int64_t>(time += gap)] += each;
  }
  double peak = 0;
  for (const auto& [second, count] : tokens) peak = std::max(peak, count);
  return peak;
}

}  // namespace

ServeMetrics sum_up(const std::vector<ServedRequest>& requests, double duration_s, const Slo& slo) {
  ServeMetrics m;
  m.duration_s = duration_s;
  m.peak_concurrent = peak_concurrent(requests);
  m.peak_output_tok_s = peak_rate(requests);
  for (const ServedRequest& r : requests) {
    if (!r.ok) {
      m.failed += 1;
      continue;
    }
    m.completed += 1;
    m.good += keeps(r, slo) ? 1 : 0;
    m.input_tokens += r.prompt_tokens;
    m.output_tokens += r.tokens;
    m.ttft_ms.push_back(1e3 * r.ttft_s);
    m.e2e_ms.push_back(1e3 * r.e2e_s);
    if (r.tokens > 1) m.tpot_ms.push_back(1e3 * r.tpot_s());
    for (const double gap : r.gaps_s) m.itl_ms.push_back(1e3 * gap);
  }
  return m;
}

Table counts_table(const ServeMetrics& m, bool with_goodput) {
  Table table{{{"Metric", Column::kLeft}, {"Value"}}, {}};
  const auto row = [&](const char* name, const std::string& value) {
    table.rows.push_back({name, value});
  };
  row("Successful requests", str_cat(m.completed));
  row("Failed requests", str_cat(m.failed));
  row("Benchmark duration (s)", fixed(m.duration_s));
  row("Total input tokens", str_cat(std::llround(m.input_tokens)));
  row("Total generated tokens", str_cat(std::llround(m.output_tokens)));
  row("Request throughput (req/s)", fixed(m.per_s(m.completed)));
  if (with_goodput) row("Request goodput (req/s)", fixed(m.per_s(m.good)));
  row("Output token throughput (tok/s)", fixed(m.per_s(m.output_tokens)));
  row("Peak output token throughput (tok/s)", fixed(m.peak_output_tok_s));
  row("Peak concurrent requests", str_cat(m.peak_concurrent));
  row("Total token throughput (tok/s)", fixed(m.per_s(m.input_tokens + m.output_tokens)));
  return table;
}

Table latency_table(const ServeMetrics& m) {
  Table table{{{"Latency (ms)", Column::kLeft}, {"Mean"}, {"Median"}, {"Std"}, {"P90"}, {"P99"}},
              {}};
  const std::pair<const char*, const std::vector<double>*> rows[] = {
      {"TTFT: time to first token", &m.ttft_ms},
      {"TPOT: time per output token (excl. 1st)", &m.tpot_ms},
      {"ITL: inter-token latency", &m.itl_ms},
      {"E2EL: end-to-end latency", &m.e2e_ms}};
  for (const auto& [name, ms] : rows) {
    table.rows.push_back({name, fixed(mean(*ms)), fixed(median(*ms)), fixed(deviation(*ms)),
                          fixed(percentile(*ms, 90)), fixed(percentile(*ms, 99))});
  }
  return table;
}

}  // namespace tinyvllm
