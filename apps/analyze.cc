// tinyvllm analyze FILE.jsonl: what a trace log says about a run. Reads logs of others too, as far
// as they go.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/progress.h"
#include "report/analyze/analysis.h"
#include "report/analyze/diff.h"
#include "report/analyze/html.h"
#include "report/analyze/perfetto.h"
#include "report/page.h"

namespace tinyvllm {
namespace {

struct AnalyzeFlags {
  std::string file;
  AnalyzeOptions options;
  std::string other;
  std::string html, perfetto;
  bool json = false;
};

Result<Trace> read_with_progress(const std::string& path) {
  ProgressBar bar("reading");
  return read_trace(path, [&](int64_t done, int64_t total) { bar.update(path, done, total); });
}

void print_diff(const AnalyzeFlags& flags, const Trace& a, const Trace& b) {
  const TableSection section = to_section(diff_traces(a, b), flags.options.top);
  if (flags.json) {
    JsonWriter json;
    json.begin_object().field("a", flags.file).field("b", flags.other);
    to_json(section, json);
    std::printf("%s\n", json.end_object().str().c_str());
    return;
  }
  std::printf("\n=== Comparing %s (A) with %s (B) ===\n\n%s", printable(flags.file, 4096).c_str(),
              printable(flags.other, 4096).c_str(), to_text(section).c_str());
}

Status run_analyze(const AnalyzeFlags& flags) {
  TRY_ASSIGN(const Trace trace, read_with_progress(flags.file));
  if (!flags.other.empty()) {
    TRY_ASSIGN(const Trace other, read_with_progress(flags.other));
    print_diff(flags, trace, other);
    return Status();
  }
  if (!flags.perfetto.empty()) {
    ProgressBar bar("writing");
    TRY(write_perfetto(trace, flags.perfetto, [&](int64_t done, int64_t total) {
      bar.update(flags.perfetto, done, total);
    }));
  }
  const Analysis analysis = analyze(flags.file, trace, flags.options);
  if (!flags.html.empty()) {
    TRY_ASSIGN(const Timeline timeline, make_timeline(trace));
    TRY(write_text_file(flags.html, to_html(analysis, trace, timeline)));
  }
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
  CLI::Option* diff =
      command->add_option("--diff", flags->other, "another log: what changed from FILE to it");
  command->add_option("--html", flags->html, "write a page that stands alone")->excludes(diff);
  command
      ->add_option("--perfetto", flags->perfetto,
                   "write a trace-event file for the Perfetto UI or chrome://tracing")
      ->excludes(diff);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "Example:\n  tinyvllm run smollm2 \"Why is the sky blue?\" --trace run.jsonl --trace-level "
      "op\n"
      "  tinyvllm analyze run.jsonl --top 10");
  command->callback([flags, &action] { action = [flags] { return run_analyze(*flags); }; });
}

}  // namespace tinyvllm
