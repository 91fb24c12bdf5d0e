// tinyvllm bench compare A.json B.json: what changed from one run to the other beyond the noise.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/bench.h"
#include "apps/bench_report.h"
#include "base/json_writer.h"
#include "report/compare.h"
#include "report/text_file.h"

namespace tinyvllm {
namespace {

struct CompareFlags {
  std::string before, after;
  double fail_above = 0;  // percent; 0: never
  bool all = false;
  bool json = false;
};

Result<BenchRun> read(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text_file(path));
  return read_bench_run(text, path);
}

std::string signed_percent(double part) { return (part < 0 ? "" : "+") + percent(part); }

void print_table(const std::vector<Comparison>& all, const CompareFlags& flags) {
  Table table{{{"Result", Column::kLeft},
               {"Before"},
               {"After"},
               {"Unit", Column::kLeft},
               {"Better by"},
               {"Noise"},
               {"Verdict", Column::kLeft}},
              {}};
  int same = 0;
  for (const Comparison& c : all) {
    same += c.verdict == Verdict::kSame ? 1 : 0;
    if (c.verdict == Verdict::kSame && !flags.all) continue;
    const bool both = c.verdict != Verdict::kOnlyBefore && c.verdict != Verdict::kOnlyAfter;
    table.rows.push_back({c.name, c.verdict == Verdict::kOnlyAfter ? "-" : decimal(c.before, 3),
                          c.verdict == Verdict::kOnlyBefore ? "-" : decimal(c.after, 3), c.unit,
                          both ? signed_percent(c.change) : "-",
                          both ? str_cat("±", percent(c.noise)) : "-", verdict_name(c.verdict)});
  }
  if (!table.rows.empty()) std::fputs(to_text(Block(table)).c_str(), stdout);
  std::printf("%d of %zu results are the same within the noise%s\n", same, all.size(),
              flags.all || same == 0 ? "" : " (--all lists them)");
}

void print_json(const std::vector<Comparison>& all) {
  JsonWriter json;
  json.begin_object().key("results").begin_array();
  for (const Comparison& c : all) {
    json.begin_object().field("name", c.name).field("unit", c.unit).field("before", c.before);
    json.field("after", c.after).field("change", c.change).field("noise", c.noise);
    json.field("verdict", verdict_name(c.verdict)).end_object();
  }
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status bench_compare(const CompareFlags& flags) {
  TRY_ASSIGN(const BenchRun before, read(flags.before));
  TRY_ASSIGN(const BenchRun after, read(flags.after));
  const std::vector<Comparison> all = compare(before, after);
  flags.json ? print_json(all) : print_table(all, flags);
  std::string slower;
  for (const Comparison& c : all) {
    if (flags.fail_above <= 0 || c.verdict != Verdict::kWorse) continue;
    if (-100 * c.change > flags.fail_above) {
      slower += str_cat(slower.empty() ? "" : ", ", c.name, " by ", percent(-c.change));
    }
  }
  if (!slower.empty()) return error("slower: ", slower);
  return Status();
}

}  // namespace

void add_bench_compare(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = bench.add_subcommand("compare", "What changed between two runs' JSON");
  command->add_option("BEFORE", flags->before, "a bench's --json or --output")->required();
  command->add_option("AFTER", flags->after, "another one's")->required();
  command->add_flag("--all", flags->all, "list what did not change, too");
  command->add_option("--fail-above", flags->fail_above,
                      "exit with 1 when something is worse by more percent than this");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "A change counts when it is larger than both runs' samples are spread, and never below "
      "2%.\n\n"
      "Example:\n  tinyvllm bench compare before.json after.json --fail-above 5");
  command->callback([flags, &action] { action = [flags] { return bench_compare(*flags); }; });
}

}  // namespace tinyvllm
