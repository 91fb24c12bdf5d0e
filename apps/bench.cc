// tinyvllm bench NAME: what this machine reaches, beside what it could.
#include "apps/bench.h"

#include <CLI/CLI.hpp>

namespace tinyvllm {

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure speed beside the machine's limits");
  bench->require_subcommand(1);
  bench->footer("Example:\n  tinyvllm bench files");
  add_bench_engine(*bench, action);
  add_bench_files(*bench, action);
  add_bench_limits(*bench, action);
  add_bench_model(*bench, action);
  add_bench_ops(*bench, action);
  add_bench_sample(*bench, action);
  add_bench_sched(*bench, action);
  add_bench_text(*bench, action);
}

}  // namespace tinyvllm
