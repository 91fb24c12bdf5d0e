// tinyvllm bench text: how fast conversations become text and text becomes tokens, on one thread,
// tokenizers beside other implementations on the same files and the same texts in the same run.
#include "apps/bench_text.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>

#include "apps/bench.h"
#include "base/json_writer.h"

namespace tinyvllm {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

namespace {

void print_table(const std::vector<TextRow>& rows) {
  std::printf("%-12s %-24s %8s %8s %-5s %8s %7s  %s\n", "", "", "best", "median", "", "peer",
              "ratio", "wanted");
  for (const TextRow& row : rows) {
    std::printf("%-12s %-24s %8.1f %8.1f %-5s", row.subject.c_str(), row.name.c_str(), row.best(),
                row.median(), row.unit.c_str());
    if (row.peer.empty()) {
      std::printf(" %16s", "");
    } else {
      std::printf(" %8.2f %6.1fx", row.peer_value, row.ratio());
    }
    if (row.wanted_ratio > 0) std::printf("  at least %gx %s", row.wanted_ratio, row.peer.c_str());
    if (row.limit > 0) std::printf("  under %g %s", row.limit, row.unit.c_str());
    std::printf("\n");
  }
}

void print_json(const std::vector<TextRow>& rows) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object();
  json.field("threads", std::thread::hardware_concurrency()).end_object();
  json.key("results").begin_array();
  for (const TextRow& row : rows) {
    json.begin_object().field("name", str_cat(row.subject, ", ", row.name));
    json.field("value", row.median()).field("unit", row.unit);
    if (row.limit > 0) {
      json.field("limit", row.limit).field("utilization", row.median() / row.limit);
    } else {
      json.key("limit").null().key("utilization").null();
    }
    json.field("samples", row.samples);
    if (!row.peer.empty()) {
      json.field("peer", row.peer).field("peer_value", row.peer_value).field("ratio", row.ratio());
    }
    if (row.wanted_ratio > 0) json.field("wanted_ratio", row.wanted_ratio);
    json.end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.str().c_str());
}

Status bench_text(const TextFlags& flags) {
  std::vector<TextRow> rows;
  TRY(bench_tokenizers(flags, rows));
  if (flags.models.empty()) TRY(bench_templates(flags, rows));
  if (flags.json) {
    print_json(rows);
  } else {
    print_table(rows);
  }
  return Status();
}

}  // namespace

void add_bench_text(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("text", "Tokenizers and chat templates");
  const auto flags = std::make_shared<TextFlags>();
  command->add_option("MODEL", flags->models,
                      "tokenizers to measure (default: those that the tests carry)");
  command->add_option("--samples", flags->samples, "times that each thing is measured")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--python", flags->python, "a Python with the package tokenizers")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm bench text --samples 9");
  command->callback([flags, &action] { action = [flags] { return bench_text(*flags); }; });
}

}  // namespace tinyvllm
