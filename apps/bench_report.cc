#include "apps/bench_report.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "report/page.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

void add_output_flags(CLI::App& command, OutputFlags& flags) {
  constexpr char kGroup[] = "Output";
  command.add_flag("--json", flags.json, "print one JSON object instead of tables")->group(kGroup);
  command.add_option("--output", flags.output, "write that JSON to a file, beside the tables")
      ->group(kGroup)
      ->type_name("FILE");
  command.add_option("--markdown", flags.markdown, "write the tables as Markdown")
      ->group(kGroup)
      ->type_name("OUT");
  command.add_option("--html", flags.html, "write tables and charts as a page for a browser")
      ->group(kGroup)
      ->type_name("OUT");
}

BenchReport::BenchReport(std::string bench, const OutputFlags& flags)
    : flags_(flags), terminal_(isatty(STDERR_FILENO) == 1) {
  const std::string version = version_text();
  run_.bench = std::move(bench);
  run_.version = version.substr(0, version.find('\n'));
  run_.date = today();
}

void BenchReport::add(Block block) {
  quiet();
  if (!flags_.json) {
    std::fputs(to_text(block).c_str(), stdout);
    std::fflush(stdout);
  }
  document_.push_back(std::move(block));
}

void BenchReport::result(BenchResult what) {
  if (what.samples.empty()) return;
  run_.results.push_back(std::move(what));
}

void BenchReport::say(const std::string& what) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K%s …", printable(what, 70).c_str());
  std::fflush(stderr);
  said_ = true;
}

void BenchReport::quiet() {
  if (!said_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  said_ = false;
}

void BenchReport::above_limit(const std::string& what, double utilization) {
  broken_ += str_cat(broken_.empty() ? "" : "; ", what, " reached ", percent(utilization),
                     " of its limit");
}

Status BenchReport::finish() {
  quiet();
  run_.complete = !interrupted();
  if (interrupted()) add(Paragraph{"Interrupted: this is what there was."});
  const std::string json = to_json(run_) + "\n";
  if (flags_.json) std::fputs(json.c_str(), stdout);
  if (!flags_.output.empty()) TRY(write_text_file(flags_.output, json));
  if (!flags_.markdown.empty()) TRY(write_text_file(flags_.markdown, to_markdown(document_)));
  if (!flags_.html.empty()) {
    TRY(write_text_file(flags_.html, Page("tinyvllm bench " + run_.bench, document_).html()));
  }
  if (!broken_.empty()) return error("more than this machine can do: ", broken_);
  return Status();
}

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", std::abs(value) >= 1000 ? 0 : digits, value);
  return text;
}

std::string percent(double part) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * part);
  return text;
}

std::string utilization_text(const BenchResult& result) {
  const std::optional<double> part = result.utilization();
  return part ? percent(*part) : "-";
}

std::string with_spread(const std::vector<double>& samples, int digits) {
  if (samples.empty()) return "-";
  if (samples.size() < 2) return decimal(samples.front(), digits);
  return str_cat(decimal(median(samples), digits), " ± ", std::lround(100 * spread(samples)), "%");
}

}  // namespace tinyvllm
