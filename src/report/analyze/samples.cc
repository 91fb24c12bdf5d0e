#include "report/analyze/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace tinyvllm {

int64_t total(const Samples& samples) {
  return std::accumulate(samples.begin(), samples.end(), int64_t{0});
}

void append(Samples& to, const Samples& more) { to.insert(to.end(), more.begin(), more.end()); }

double percentile(Samples& samples, double percent) {
  if (samples.empty()) return 0;
  const double rank = percent / 100 * static_cast<double>(samples.size() - 1);
  const auto lower = samples.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(samples.begin(), lower, samples.end());
  const double weight = rank - std::floor(rank);
  if (weight == 0) return static_cast<double>(*lower);
  const int64_t upper = *std::min_element(lower + 1, samples.end());
  return static_cast<double>(*lower) * (1 - weight) + static_cast<double>(upper) * weight;
}

Stats summarize(Samples samples) {
  Stats stats;
  if (samples.empty()) return stats;
  stats.count = static_cast<int64_t>(samples.size());
  stats.total_ns = total(samples);
  stats.avg_ns = static_cast<double>(stats.total_ns) / static_cast<double>(stats.count);
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  stats.min_ns = static_cast<double>(*least);
  stats.max_ns = static_cast<double>(*most);
  stats.p50_ns = percentile(samples, 50);
  stats.p95_ns = percentile(samples, 95);
  stats.p99_ns = percentile(samples, 99);
  return stats;
}

std::string to_line(const Stats& stats) {
  if (stats.count == 0) return "no samples";
  char text[256];
  std::snprintf(text, sizeof text,
                "count=%lld | total=%.2fms | avg=%.3fms | min=%.3fms | max=%.3fms | "
                "p95_ms=%.3fms, p99_ms=%.3fms",
                static_cast<long long>(stats.count), static_cast<double>(stats.total_ns) / 1e6,
                stats.avg_ns / 1e6, stats.min_ns / 1e6, stats.max_ns / 1e6, stats.p95_ns / 1e6,
                stats.p99_ns / 1e6);
  return text;
}

}  // namespace tinyvllm
