// tinyvllm bench limits: what this machine can do at best, the denominators of every "percent of
// the limit". The three that matter are measured once and then read from the user's cache folder;
// how a CPU's come about, by thread count, working set and instruction set, is measured each time.
#include <CLI/CLI.hpp>

#include "apps/bench.h"
#include "apps/bench_report.h"
#include "apps/device_flags.h"
#include "base/stopwatch.h"
#include "device/cpu/cpu_device.h"
#include "engine/machine_limits.h"
#include "ops/cpu/limits.h"
#include "report/plot.h"

namespace tinyvllm {
namespace {

struct LimitsFlags {
  DeviceFlags device;
  bool remeasure = false;
  OutputFlags out;
};

constexpr size_t kFarFromAnyCache = size_t{1} << 30;

Status write_threads(BenchReport& report, Runtime& runtime) {
  report.say("reading memory, thread by thread");
  std::vector<int> counts;
  for (int n = 1; n < runtime.pool().size(); n *= 2) counts.push_back(n);
  counts.push_back(runtime.pool().size());
  TRY_ASSIGN(const std::vector<double> rates,
             ops::cpu::measure_read(runtime.device(), runtime.pool(), kFarFromAnyCache, counts));
  Table table{{{"Threads"}, {"Read GB/s"}, {"of one thread"}}, {}};
  for (size_t i = 0; i < counts.size(); ++i) {
    table.rows.push_back(
        {str_cat(counts[i]), decimal(rates[i] / 1e9), decimal(rates[i] / rates.front(), 2) + "x"});
    report.result({str_cat("read, ", counts[i], " threads"), "GB/s", {rates[i] / 1e9}});
  }
  report.add(Heading{"Read Bandwidth by Threads"});
  report.add(std::move(table));
  return Status();
}

Status write_working_sets(BenchReport& report, Runtime& runtime) {
  const int threads = runtime.pool().size();
  Table table{{{"Working set"}, {"Read GB/s"}}, {}};
  Series series{"read", {}};
  for (size_t kilobytes = 16; kilobytes <= (kFarFromAnyCache >> 10); kilobytes *= 8) {
    const size_t bytes = (kilobytes << 10) * static_cast<size_t>(kilobytes < 512 ? threads : 1);
    report.say("reading " + human_bytes(static_cast<double>(bytes)));
    TRY_ASSIGN(const std::vector<double> rates,
               ops::cpu::measure_read(runtime.device(), runtime.pool(), bytes, {threads}));
    const std::string name = human_bytes(static_cast<double>(bytes));
    table.rows.push_back({name, decimal(rates.front() / 1e9)});
    series.points.push_back({static_cast<double>(bytes) / 1e6, rates.front() / 1e9, name});
    report.result({"read of " + name, "GB/s", {rates.front() / 1e9}});
  }
  report.add(Heading{"Read Bandwidth by Working Set"});
  report.add(std::move(table));
  report.add(Figure{
      to_svg(Chart{"Read bandwidth by working set", {"MB", true}, {"GB/s", true}, {series}})});
  return Status();
}

void write_instruction_sets(BenchReport& report, Runtime& runtime) {
  Table table{{{"ISA", Column::kLeft}, {"FMA GFLOP/s"}, {"Int8 GOP/s"}}, {}};
  for (const Isa isa : supported_isas()) {
    report.say(str_cat("multiplying with ", isa_name(isa)));
    CpuDevice device(isa);
    const MachineLimits limits = ops::cpu::measure_compute(device, runtime.pool());
    table.rows.push_back(
        {isa_name(isa), decimal(limits.flops_per_s / 1e9), decimal(limits.int8_ops_per_s / 1e9)});
    report.result({str_cat("fma, ", isa_name(isa)), "GFLOP/s", {limits.flops_per_s / 1e9}});
    report.result({str_cat("int8, ", isa_name(isa)), "GOP/s", {limits.int8_ops_per_s / 1e9}});
  }
  report.add(Heading{"Multiplication by Instruction Set"});
  report.add(std::move(table));
}

Status bench_limits(const LimitsFlags& flags) {
  watch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  BenchReport report("limits", flags.out);
  std::optional<MachineLimits> limits;
  if (!flags.remeasure) limits = cached_limits(*runtime);
  const bool cached = limits.has_value();
  const Stopwatch clock;
  if (!cached) {
    report.say("measuring this machine");
    TRY_ASSIGN(limits, measure_limits(*runtime));
  }
  const MachineKey key = machine_key(*runtime);
  report.run().machine = {
      {"cpu", key.cpu}, {"threads", static_cast<double>(key.threads)}, {"isa", key.isa}};
  report.run().limits = {{"read_gb_s", limits->read_bytes_per_s / 1e9},
                         {"fma_gflop_s", limits->flops_per_s / 1e9},
                         {"int8_gop_s", limits->int8_ops_per_s / 1e9},
                         {"cached", cached ? 1.0 : 0.0}};
  const bool card = limits->copy_bytes_per_s > 0;
  report.add(Heading{"This Machine's Limits", 1});
  report.add(
      Paragraph{str_cat(key.words(), ", ",
                        cached ? "measured earlier (--remeasure does it again)"
                               : str_cat("measured in ", decimal(clock.seconds(), 2), " s"))});
  Table table{{{"Limit", Column::kLeft}, {"Value"}, {"Unit", Column::kLeft}}, {}};
  const auto limit = [&](const char* name, const char* what, double value, const char* unit) {
    table.rows.push_back({what, decimal(value), unit});
    report.result({name, unit, {value}, value});
  };
  limit("read", "read memory", limits->read_bytes_per_s / 1e9, "GB/s");
  if (card) {
    limit("copy", "copy within the card", limits->copy_bytes_per_s / 1e9, "GB/s");
    limit("upload", "upload from pinned memory", limits->upload_bytes_per_s / 1e9, "GB/s");
    limit("bf16", "bf16 matmul", limits->flops_per_s / 1e12, "TFLOP/s");
  } else {
    limit("fma", "float FMA", limits->flops_per_s / 1e9, "GFLOP/s");
    limit("int8", "int8 products", limits->int8_ops_per_s / 1e9, "GOP/s");
  }
  report.add(std::move(table));
  if (card) return report.finish();
  if (!interrupted()) TRY(write_threads(report, *runtime));
  if (!interrupted()) TRY(write_working_sets(report, *runtime));
  if (!interrupted()) write_instruction_sets(report, *runtime);
  return report.finish();
}

}  // namespace

void add_bench_limits(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<LimitsFlags>();
  CLI::App* command =
      bench.add_subcommand("limits", "What this machine, or a card, reads and multiplies at best");
  add_device_flags(*command, flags->device);
  command->add_flag("--remeasure", flags->remeasure, "measure again what was measured before");
  add_output_flags(*command, flags->out);
  command->footer(
      "Example:\n  tinyvllm bench limits --remeasure\n  tinyvllm bench limits --device cuda");
  command->callback([flags, &action] { action = [flags] { return bench_limits(*flags); }; });
}

}  // namespace tinyvllm
