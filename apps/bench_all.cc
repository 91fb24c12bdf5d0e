// tinyvllm bench all: the five benches of a model on one page, ready to be committed.
#include "apps/bench.h"
#include "apps/bench_session.h"

namespace tinyvllm {
namespace {

Status closing_section(BenchSession& session) {
  const BenchFlags& flags = session.flags();
  std::string model = flags.model.empty() ? "" : " " + flags.model;
  if (flags.engine.load_format == "dummy") {
    model += str_cat(" --load-format dummy --dtype ", flags.engine.dtype);
  }
  const std::string name = session.runtime().device().name();
  const std::string device = name.substr(0, name.find('-'));  // "cuda", of "cuda-sm90"
  std::string commands = "# All benchmarks with this model\n";
  for (const char* bench : {"throughput", "latency", "memory", "scalability", "breakdown"}) {
    commands += str_cat("DEVICE=", device, " tinyvllm bench ", bench, model, "\n");
  }
  commands += "\n# Quick tests with a tiny model\ntinyvllm bench throughput";
  session.report().add(Heading{"Running Benchmarks"});
  session.report().add(Code{commands, "bash"});
  return Status();
}

}  // namespace

// Memory comes first: the other benches touch more of the KV cache than one request needs.
void add_bench_all(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "all", "Benchmarks",
                  "The five benches of a model: throughput, latency, memory, …",
                  {memory_section, throughput_section, latency_section, scalability_section,
                   breakdown_section, closing_section});
}

}  // namespace tinyvllm
