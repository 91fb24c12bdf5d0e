// What a bench says, to everyone at once: blocks on the terminal as they come, results for --json,
// and at the end the whole as Markdown and as a page. What there is when Ctrl-C comes is written
// all the same.
#pragma once

#include <string>
#include <vector>

#include "apps/command.h"
#include "report/bench_run.h"
#include "report/document.h"

namespace tinyvllm {

struct OutputFlags {
  bool json = false;
  std::string output;
  std::string markdown;
  std::string html;
};
void add_output_flags(CLI::App& command, OutputFlags& flags);

class BenchReport {
 public:
  BenchReport(std::string bench, const OutputFlags& flags);

  void add(Block block);          // on stdout at once, unless JSON goes there
  void result(BenchResult what);  // for machines
  BenchRun& run() { return run_; }

  // What is being done, on a terminal, until the next word or block.
  void say(const std::string& what);

  // An op or a workload that did better than the machine can: the ledger or the limit is wrong,
  // and `finish` says so.
  void above_limit(const std::string& what, double utilization);

  Status finish();

 private:
  void quiet();

  const OutputFlags flags_;
  const bool terminal_;
  bool said_ = false;
  BenchRun run_;
  Document document_;
  std::string broken_;  // what was above its limit
};

// "12.5", "1250": so many digits after the point, none of them in numbers of four digits and more.
std::string decimal(double value, int digits = 1);
std::string percent(double part);                         // 0.123 → "12.3%"
std::string utilization_text(const BenchResult& result);  // "-" without a limit
// "8.1 ± 2%" of one unit or another: what a table shows of several samples.
std::string with_spread(const std::vector<double>& samples, int digits = 1);

}  // namespace tinyvllm
