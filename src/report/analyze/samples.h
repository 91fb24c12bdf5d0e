// Durations in the order they were logged, kept whole: percentiles are exact. Nanoseconds as
// integers, so that a sum does not depend on the order of adding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tinyvllm {

using Samples = std::vector<int64_t>;

struct Stats {
  int64_t count = 0;
  int64_t total_ns = 0;
  double avg_ns = 0;
  double min_ns = 0;
  double max_ns = 0;
  double p50_ns = 0;
  double p95_ns = 0;
  double p99_ns = 0;
};

int64_t total(const Samples& samples);
void append(Samples& to, const Samples& more);

// Linear interpolation between the two samples around the rank. Reorders the samples.
double percentile(Samples& samples, double percent);

Stats summarize(Samples samples);

// "count=234 | total=0.57ms | avg=0.002ms | … | p95_ms=0.006ms, p99_ms=0.008ms", or "no samples".
std::string to_line(const Stats& stats);

}  // namespace tinyvllm
