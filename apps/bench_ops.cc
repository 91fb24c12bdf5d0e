// tinyvllm bench ops: every kernel × type × shape of real models alone, beside what the machine, or
// a card, was measured to read and to multiply.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/bench.h"
#include "apps/bench_report.h"
#include "apps/device_flags.h"
#include "apps/roof.h"
#include "apps/timed_ops.h"
#include "engine/machine_limits.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

struct OpsFlags {
  DeviceFlags device;
  std::string filter;
  std::vector<int> tokens = {1, 16, 128};
  double seconds = 0.04;
  bool remeasure = false;
  OutputFlags out;
};

// The least disturbed sample is an op's speed; all of them are kept.
double best_us(const TimedOp& op) {
  return 1e6 * *std::min_element(op.seconds.begin(), op.seconds.end());
}

Table make_table(const std::vector<TimedOp>& ops, const Roof& roof) {
  Table table{{{"op", Column::kLeft},
               {"best us"},
               {"median us"},
               {"GB/s"},
               {"GFLOP/s"},
               {"limit"},
               {"bound by", Column::kLeft}},
              {}};
  for (const TimedOp& op : ops) {
    const double us = best_us(op);
    const Roof::Bound least = roof.least(op.calls);
    table.rows.push_back({op.name, decimal(us), decimal(1e6 * median(op.seconds)),
                          decimal(op.bytes() / us / 1e3), decimal(op.flops() / us / 1e3),
                          least.seconds > 0 ? percent(1e6 * least.seconds / us) : "-", least.by});
  }
  return table;
}

Figure make_figure(const std::vector<TimedOp>& ops, const Roof& roof) {
  Series linear{"linear", {}, Mark::kPoints}, attention{"attention", {}, Mark::kPoints},
      rest{"others", {}, Mark::kPoints};
  for (const TimedOp& op : ops) {
    if (op.bytes() <= 0 || op.flops() <= 0) continue;
    Series& series = op.name.starts_with("linear")      ? linear
                     : op.name.starts_with("attention") ? attention
                                                        : rest;
    series.points.push_back({op.flops() / op.bytes(), op.flops() / best_us(op) / 1e3, {}});
  }
  return roofline(roof, {linear, attention, rest});
}

Result<Roof> measure_roof(Runtime& runtime, bool remeasure) {
  std::optional<MachineLimits> limits;
  if (!remeasure) limits = cached_limits(runtime);
  if (!limits) {
    TRY_ASSIGN(limits, measure_limits(runtime));
  }
  return make_roof(runtime, *limits, 0);
}

// What the table holds ops against.
void write_head(BenchReport& report, const MachineKey& key, const Roof& roof) {
  const MachineLimits& limits = roof.limits;
  report.run().machine = {
      {"cpu", key.cpu}, {"threads", static_cast<double>(key.threads)}, {"isa", key.isa}};
  report.run().limits = {{"read_gb_s", limits.read_bytes_per_s / 1e9},
                         {"float_gflop_s", limits.flops_per_s / 1e9},
                         {"int8_gop_s", limits.int8_ops_per_s / 1e9}};
  report.add(Heading{"tinyvllm Ops Benchmark", 1});
  const std::string read = str_cat("read ", decimal(limits.read_bytes_per_s / 1e9), " GB/s, ");
  if (roof.cache_bytes_per_s <= 0) {
    report.add(Paragraph{str_cat(
        key.words(), ": ", read, "bf16 matmul ", decimal(limits.flops_per_s / 1e12),
        " TFLOP/s. How fast its caches are is not measured, so ops whose data stay there have no "
        "limit; an op shorter than its launch takes what the launch does.")});
    return;
  }
  report.run().limits.push_back({"cache_gb_s", roof.cache_bytes_per_s / 1e9});
  report.add(Paragraph{str_cat(key.threads, " threads: ", read, "caches ",
                               decimal(roof.cache_bytes_per_s / 1e9), " GB/s, float ",
                               decimal(limits.flops_per_s / 1e9), " GFLOP/s, int8 ",
                               decimal(limits.int8_ops_per_s / 1e9), " GOP/s")});
}

Status run_bench(const OpsFlags& flags) {
  watch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  BenchReport report("ops", flags.out);
  report.say("measuring this machine");
  TRY_ASSIGN(Roof roof, measure_roof(*runtime, flags.remeasure));
  OpTimer timer(*runtime, flags.filter, flags.seconds);
  timer.on_result([&](const TimedOp& op) { report.say(op.name); });
  TRY(time_rows(timer, flags.tokens));
  TRY(time_attentions(timer));
  TRY(time_mixtures(timer, flags.tokens));
  TRY(time_linears(timer, flags.tokens));
  if (timer.results().empty() && !interrupted()) {
    return error("--filter: no op's name contains '", printable(flags.filter), "'");
  }

  // Faster than the limit: was the machine busy when that was measured?
  const auto reached = [&](const TimedOp& op) {
    return 1e6 * roof.least(op.calls).seconds / best_us(op);
  };
  const auto above = [&](const TimedOp& op) { return reached(op) > 1; };
  if (std::any_of(timer.results().begin(), timer.results().end(), above)) {
    TRY_ASSIGN(const MachineLimits again, measure_limits(*runtime, roof.limits));
    TRY_ASSIGN(roof, make_roof(*runtime, again, 0));
  }
  write_head(report, machine_key(*runtime), roof);
  report.add(make_table(timer.results(), roof));
  report.add(make_figure(timer.results(), roof));
  for (const TimedOp& op : timer.results()) {
    BenchResult result{op.name, "us", {}};
    if (const double least = roof.least(op.calls).seconds; least > 0) result.limit = 1e6 * least;
    for (const double s : op.seconds) result.samples.push_back(1e6 * s);
    report.result(std::move(result));
    if (above(op)) report.above_limit(op.name, reached(op));
  }
  return report.finish();
}

}  // namespace

void add_bench_ops(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<OpsFlags>();
  CLI::App* command = bench.add_subcommand("ops", "Each op alone, at the shapes of real models");
  add_device_flags(*command, flags->device);
  command->add_option("--filter", flags->filter, "only ops whose name contains this");
  command->add_option("--tokens", flags->tokens, "rows of activations")
      ->delimiter(',')
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  command->add_option("--seconds", flags->seconds, "time to spend on each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--remeasure", flags->remeasure, "measure this machine's limits again");
  add_output_flags(*command, flags->out);
  command->footer(
      "Examples:\n  tinyvllm bench ops --filter 'linear Q4_0' --tokens 1,4,16,128,512\n"
      "  tinyvllm bench ops --device cuda --filter tokens=1");
  command->callback([flags, &action] { action = [flags] { return run_bench(*flags); }; });
}

}  // namespace tinyvllm
