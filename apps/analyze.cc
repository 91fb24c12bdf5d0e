// tinyvllm analyze FILE.jsonl: what a trace log says about a run. Reads logs of others too, as far
// as they go.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/progress.h"
#include "report/analyze/analysis.h"

namespace tinyvllm {
namespace {

struct AnalyzeFlags {
  std::string file;
  AnalyzeOptions options;
  bool json = false;
};

Result<Trace> read_with_progress(const std::string& path) {
  ProgressBar bar("reading");
  return read_trace(path, [&](int64_t done, int64_t total) { bar.update(path, done, total); });
}

Status run_analyze(const AnalyzeFlags& flags) {
  TRY_ASSIGN(const Trace trace, read_with_progress(flags.file));
  const Analysis analysis = analyze(flags.file, trace, flags.options);
  std::fputs((flags.json ? to_json(analysis, trace) + "\n" : to_text(analysis)).c_str(), stdout);
  return Status();
}

}  // namespace

void add_analyze(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("analyze", "Say where the time of a traced run went");
  const auto flags = std::make_shared<AnalyzeFlags>();
  command->add_option("FILE", flags->file, "a log written by --trace")->required();
  command->add_option("--top", flags->options.top, "lines in a section")->capture_default_str();
  command->add_option("--kernel-top", flags->options.kernel_top, "lines in the kernel aggregate")
      ->capture_default_str();
  command->add_option("--kernel-filter", flags->options.kernel_filter,
                      "only kernels whose name contains this, in any case");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "Example:\n  tinyvllm run smollm2 \"Why is the sky blue?\" --trace run.jsonl --trace-level "
      "op\n"
      "  tinyvllm analyze run.jsonl --top 10");
  command->callback([flags, &action] { action = [flags] { return run_analyze(*flags); }; });
}

}  // namespace tinyvllm
