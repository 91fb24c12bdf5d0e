// What clients of a server saw, summed up as vLLM's `bench serve` does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/document.h"

namespace tinyvllm {

struct ServedRequest {
  bool ok = false;
  std::string error = {};  // why not
  double start_s = 0;      // when it was sent, from the beginning of the run
  double ttft_s = 0;
  double e2e_s = 0;
  std::vector<double> gaps_s = {};  // between pieces of the answer
  int prompt_tokens = 0;
  int tokens = 0;

  double tpot_s() const { return tokens > 1 ? (e2e_s - ttft_s) / (tokens - 1) : 0; }
};

// Bounds in milliseconds, of "ttft", "tpot" and "e2el": a request that keeps all of them is good.
using Slo = std::map<std::string, double>;

struct ServeMetrics {
  int completed = 0;
  int failed = 0;
  double duration_s = 0;
  double input_tokens = 0, output_tokens = 0;
  int good = 0;
  int peak_concurrent = 0;
  double peak_output_tok_s = 0;  // in the best second
  std::vector<double> ttft_ms, tpot_ms, itl_ms, e2e_ms;

  double per_s(double count) const { return duration_s > 0 ? count / duration_s : 0; }
};

ServeMetrics sum_up(const std::vector<ServedRequest>& requests, double duration_s, const Slo& slo);

// Counts and rates under vLLM's names; then mean, median and tails of the four latencies.
Table counts_table(const ServeMetrics& metrics, bool with_goodput);
Table latency_table(const ServeMetrics& metrics);

}  // namespace tinyvllm
