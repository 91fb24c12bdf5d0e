// tinyvllm bench NAME: what this machine reaches, beside what it could.
#include "apps/bench.h"

#include <CLI/CLI.hpp>

namespace tinyvllm {

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure speed beside the machine's limits");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n  tinyvllm bench throughput\n  tinyvllm bench all smollm2 --html report.html");
  add_bench_all(*bench, action);
  add_bench_analyze(*bench, action);
  add_bench_breakdown(*bench, action);
  add_bench_compare(*bench, action);
  add_bench_engine(*bench, action);
  add_bench_files(*bench, action);
  add_bench_latency(*bench, action);
  add_bench_limits(*bench, action);
  add_bench_memory(*bench, action);
  add_bench_model(*bench, action);
  add_bench_ops(*bench, action);
  add_bench_sample(*bench, action);
  add_bench_scalability(*bench, action);
  add_bench_sched(*bench, action);
  add_bench_serve(*bench, action);
  add_bench_text(*bench, action);
  add_bench_throughput(*bench, action);
  add_bench_trace(*bench, action);
}

}  // namespace tinyvllm
