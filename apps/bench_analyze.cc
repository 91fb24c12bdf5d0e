// tinyvllm bench analyze: how long a trace log of a million records takes to read and to analyze,
// and the memory of it. The log is written to the temporary folder and removed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "report/analyze/analysis.h"
#include "report/samples.h"
#include "tests/io/temp_folder.h"

namespace tinyvllm {
namespace {

constexpr double kLimitSeconds = 2;
constexpr double kLimitMb = 200;
constexpr int kLayers = 30;

struct AnalyzeBenchFlags {
  int records = 1'000'000;
  int samples = 5;
  bool json = false;
};

// Op records as a traced decode writes them, about 380 bytes each.
void write_log(const std::string& path, int records) {
  constexpr const char* kOps[] = {"norm_linear", "rope_kv_write", "attention", "linear_add",
                                  "norm_linear_gated"};
  std::ofstream file(path, std::ios::binary);
  double now = 0;
  char line[640];
  for (int i = 0; i < records; ++i) {
    const char* op = kOps[i % std::size(kOps)];
    const int layer = i / static_cast<int>(std::size(kOps)) % kLayers;
    const double lasted = 10 + i * 7919LL % 1000 * 0.05;
    now += lasted;
    const int size = std::snprintf(
        line, sizeof line,
        "{\"timestamp\":%.3f,\"span_id\":%d,\"parent_span_id\":%d,\"span_name\":\"%s\",\"event\":{"
        "\"type\":\"GpuOpCompleted\",\"data\":{\"op_name\":\"Generation Loop/block_%d/%s\","
        "\"backend\":\"cpu-avx2\",\"duration_us\":%.3f,\"data\":{\"op\":\"%s\",\"batch\":1,\"m\":1,"
        "\"n\":576,\"k\":1536,\"dtype\":\"Q4_1\",\"phase\":\"decode\",\"layer\":%d,\"step\":%d,"
        "\"bytes\":552960,\"flops\":1769472}}}}\n",
        now, i + 1, i / 5, op, layer, op, lasted, op, layer,
        i / (kLayers * static_cast<int>(std::size(kOps))));
    file.write(line, size);
  }
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024 / 1e6;
  }
  return 0;
}

void print(const std::vector<double>& seconds, double megabytes, const AnalyzeBenchFlags& flags) {
  const double middle = median(seconds);
  if (!flags.json) {
    std::printf(
        "%d records, %.0f MB: best %.2f s, median %.2f s (limit %.0f s), peak memory %.0f MB"
        " (limit %.0f MB)\n",
        flags.records, megabytes, seconds.front(), middle, kLimitSeconds, peak_mb(), kLimitMb);
    return;
  }
  JsonWriter json;
  json.begin_object().key("machine").begin_object();
  json.field("threads", std::thread::hardware_concurrency()).end_object();
  json.key("results").begin_array().begin_object();
  json.field("name", str_cat("analyze ", flags.records, " records")).field("value", middle);
  json.field("unit", "s").field("limit", kLimitSeconds);
  json.field("utilization", middle / kLimitSeconds).field("samples", seconds).end_object();
  json.begin_object().field("name", "peak memory").field("value", peak_mb()).field("unit", "MB");
  json.field("limit", kLimitMb).field("utilization", peak_mb() / kLimitMb);
  json.field("samples", std::vector<double>{peak_mb()}).end_object();
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status bench_analyze(const AnalyzeBenchFlags& flags) {
  const TempFolder folder;
  const std::string path = folder.path("run.jsonl");
  write_log(path, flags.records);
  std::vector<double> seconds;
  for (int i = 0; i < flags.samples; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TRY_ASSIGN(const Trace trace, read_trace(path));
    if (trace.events != flags.records) return error("read ", trace.events, " records");
    if (to_text(analyze(path, trace, {})).empty()) return error("the analysis is empty");
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  print(seconds, static_cast<double>(std::filesystem::file_size(path)) / 1e6, flags);
  return Status();
}

}  // namespace

void add_bench_analyze(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("analyze", "Read and analyze a log of a million records");
  const auto flags = std::make_shared<AnalyzeBenchFlags>();
  command->add_option("--records", flags->records, "lines of the log")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command->add_option("--samples", flags->samples, "times it is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm bench analyze --samples 10");
  command->callback([flags, &action] { action = [flags] { return bench_analyze(*flags); }; });
}

}  // namespace tinyvllm
