// The benches behind `tinyvllm bench NAME`, one file each (bench_NAME.cc).
#pragma once

#include "apps/command.h"

namespace tinyvllm {

void add_bench_all(CLI::App& bench, Action& action);
void add_bench_analyze(CLI::App& bench, Action& action);
void add_bench_breakdown(CLI::App& bench, Action& action);
void add_bench_compare(CLI::App& bench, Action& action);
void add_bench_engine(CLI::App& bench, Action& action);
void add_bench_files(CLI::App& bench, Action& action);
void add_bench_latency(CLI::App& bench, Action& action);
void add_bench_limits(CLI::App& bench, Action& action);
void add_bench_memory(CLI::App& bench, Action& action);
void add_bench_model(CLI::App& bench, Action& action);
void add_bench_ops(CLI::App& bench, Action& action);
void add_bench_sample(CLI::App& bench, Action& action);
void add_bench_scalability(CLI::App& bench, Action& action);
void add_bench_sched(CLI::App& bench, Action& action);
void add_bench_serve(CLI::App& bench, Action& action);
void add_bench_text(CLI::App& bench, Action& action);
void add_bench_throughput(CLI::App& bench, Action& action);
void add_bench_trace(CLI::App& bench, Action& action);

}  // namespace tinyvllm
