// Two runs of the same benchmark: what changed beyond the noise that each of them shows.
#pragma once

#include <string>
#include <vector>

#include "report/bench_run.h"

namespace tinyvllm {

enum class Verdict { kSame, kBetter, kWorse, kOnlyBefore, kOnlyAfter };
const char* verdict_name(Verdict verdict);

struct Comparison {
  std::string name;
  std::string unit;
  double before = 0;
  double after = 0;
  double change = 0;  // how much better, +0.1 for a tenth: more tok/s, fewer ms
  double noise = 0;   // changes up to here say nothing
  Verdict verdict = Verdict::kSame;
};

// In the order of `before`; what only one of them has comes last. A change is real when it is
// larger than both runs' samples are spread, together, and never when it is below 2%; of fewer than
// three samples the spread is not known, and 10% is asked for.
std::vector<Comparison> compare(const BenchRun& before, const BenchRun& after);

}  // namespace tinyvllm
