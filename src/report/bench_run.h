// What one run of a benchmark measured, where and on what: the contents of a bench's --json.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

struct BenchResult {
  std::string name;
  std::string unit;  // "tok/s", "ms", …; it says which way is better
  std::vector<double> samples;
  std::optional<double> limit = {};  // of the machine, in the same unit

  double value() const;                       // the median
  std::optional<double> utilization() const;  // part of the limit that was reached
  bool more_is_better() const;
};

// Things by name, in the order in which they were said.
using Facts = std::vector<std::pair<std::string, std::variant<std::string, double>>>;

struct BenchRun {
  std::string bench;  // "throughput"
  std::string version;
  std::string date;
  Facts machine = {}, model = {}, limits = {};
  std::vector<BenchResult> results = {};
  bool complete = true;  // false: ended by Ctrl-C
};

// {bench, version, date, complete, machine{}, model{}, limits{},
//  results[{name, value, unit, limit, utilization, spread, samples[]}]}
std::string to_json(const BenchRun& run);

// Reads what any bench wrote; `name` is the file's, for errors.
Result<BenchRun> read_bench_run(std::string_view json, const std::string& name);

}  // namespace tinyvllm
