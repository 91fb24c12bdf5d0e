// tinyvllm bench limits: what this machine can do at best, the denominators of every "percent of
// the limit". Measured once and then read from the user's cache folder.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/machine_limits.h"

namespace tinyvllm {
namespace {

struct LimitsFlags {
  int threads = 0;
  bool remeasure = false;
  bool json = false;
};

void print_json(const MachineKey& key, const MachineLimits& limits, bool cached) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object().field("cpu", key.cpu);
  json.field("threads", key.threads).field("isa", key.isa).end_object();
  json.key("limits").begin_object().field("read_gb_s", limits.read_bytes_per_s / 1e9);
  json.field("fma_gflop_s", limits.flops_per_s / 1e9);
  json.field("int8_gop_s", limits.int8_ops_per_s / 1e9).field("cached", cached).end_object();
  json.key("results").begin_array();
  const auto result = [&](const char* name, double value, const char* unit) {
    json.begin_object().field("name", name).field("value", value).field("unit", unit);
    json.field("limit", value).field("utilization", 1.0);
    json.key("samples").begin_array().value(value).end_array().end_object();
  };
  result("read", limits.read_bytes_per_s / 1e9, "GB/s");
  result("fma", limits.flops_per_s / 1e9, "GFLOP/s");
  result("int8", limits.int8_ops_per_s / 1e9, "GOP/s");
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status bench_limits(const LimitsFlags& flags) {
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create({flags.threads}));
  std::optional<MachineLimits> limits;
  if (!flags.remeasure) limits = cached_limits(*runtime);
  const bool cached = limits.has_value();
  const Stopwatch clock;
  if (!cached) {
    TRY_ASSIGN(limits, measure_limits(*runtime));
  }
  const double seconds = clock.seconds();
  const MachineKey key = machine_key(*runtime);
  if (flags.json) {
    print_json(key, *limits, cached);
    return Status();
  }
  std::printf("%s, %d threads, %s\n\n", key.cpu.c_str(), key.threads, key.isa.c_str());
  std::printf("read memory     %8.1f GB/s\n", limits->read_bytes_per_s / 1e9);
  std::printf("float FMA       %8.1f GFLOP/s\n", limits->flops_per_s / 1e9);
  std::printf("int8 products   %8.1f GOP/s\n", limits->int8_ops_per_s / 1e9);
  if (cached) {
    std::fprintf(stderr, "measured earlier; --remeasure does it again\n");
  } else {
    std::fprintf(stderr, "measured in %.2f s\n", seconds);
  }
  return Status();
}

}  // namespace

void add_bench_limits(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<LimitsFlags>();
  CLI::App* command = bench.add_subcommand("limits", "What this machine can do at best");
  command->add_option("-t,--threads", flags->threads, "default: the physical cores");
  command->add_flag("--remeasure", flags->remeasure, "even if it was measured before");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example:\n  tinyvllm bench limits --remeasure");
  command->callback([flags, &action] { action = [flags] { return bench_limits(*flags); }; });
}

}  // namespace tinyvllm
