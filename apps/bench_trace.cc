// tinyvllm bench trace MODEL: what tracing costs a decode step. At each level a few tokens are
// decoded and traced to a file, in turns with the same untraced, so that whatever else the machine
// does meets all alike. The same without any trace is measured too, as if it were a level: what it
// is away from nothing is noise. What a trace costs that is off is too little to be measured that
// way, and is worked out: nanoseconds of a zone that nobody listens to, times zones of a step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

#include "apps/bench.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/llm_engine.h"
#include "telemetry/trace_file.h"

namespace tinyvllm {
namespace {

constexpr int kWarmUp = 5;  // steps, the prompt's among them

struct TraceBenchFlags {
  std::string model = kDefaultModel;
  int decode = 16;
  int rounds = 100;
  DeviceFlags device;
  bool json = false;
  EngineOptions engine;
};

struct Cost {
  std::string name;
  double limit_percent = 0;              // that it must stay below; 0: no limit
  std::vector<double> percents;          // two of a round
  std::vector<double> traced, untraced;  // seconds of the samples that they compare

  double median() const { return quantile(percents, 0.5); }
  // What slows a sample besides its trace comes in spikes; those that were spared say it best.
  double undisturbed() const {
    return 100 * (quantile(traced, 0.25) / quantile(untraced, 0.25) - 1);
  }

 private:
  static double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size()))];
  }
};

// Counts what a step notes, which is how many zones it has.
class Counter final : public TraceSink {
 public:
  TraceLevel level() const override { return TraceLevel::kOp; }
  void take(const TraceRecord& record) override {
    records += 1;
    steps += std::holds_alternative<StepCompleted>(record.event) ? 1 : 0;
  }
  double records = 0;
  double steps = 0;
};

// Seconds of a decode step: the mean of `decode` of them, after a prompt of one token and a few
// that follow a change of level. None is left out, and what they noted is written out and counted
// before the clock stops: it would take its time from somebody.
Result<double> seconds_per_step(LLMEngine& engine, Tracer& tracer, int decode) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = kWarmUp + decode;
  TRY(engine.add_request(std::vector<int32_t>{1}, sampling));
  for (int i = 0; i < kWarmUp; ++i) engine.step();
  tracer.flush();
  const Stopwatch clock;
  while (engine.has_work()) {
    for (const RequestOutput& output : engine.step()) {
      if (!output.error.empty()) return error(output.error);
    }
  }
  tracer.flush();
  return clock.seconds() / decode;
}

class TraceBench {
 public:
  TraceBench(Runtime& runtime, LLMEngine& engine, const TraceBenchFlags& flags)
      : runtime_(runtime),
        engine_(engine),
        flags_(flags),
        path_((std::filesystem::temp_directory_path() /
               str_cat("tinyvllm_bench_trace_", getpid(), ".jsonl"))
                  .string()) {}
  ~TraceBench() { std::filesystem::remove(path_); }

  Status run() {
    TRY(measure());  // pages, caches, threads
    for (int round = 0; round < flags_.rounds && !interrupted(); ++round) {
      TRY_ASSIGN(double before, measure());  // the last one came right after the most costly level
      for (size_t i = 0; i < std::size(kLevels); ++i) {
        TRY_ASSIGN(const double traced, seconds_traced(kLevels[i]));
        TRY_ASSIGN(const double after, measure());
        // With either neighbour on its own: half the time a sample is the slower of two alike, but
        // not of itself and the mean of two, when what slows them comes in spikes.
        for (const double untraced : {before, after}) {
          costs_[i].percents.push_back(100 * (traced / untraced - 1));
          costs_[i].untraced.push_back(untraced);
        }
        costs_[i].traced.push_back(traced);
        step_seconds_ = std::min(step_seconds_, after);
        before = after;
      }
    }
    return count_zones();
  }

  void print_table() const {
    std::printf("%s, %d threads, a decode step of %.2f ms\n\n", engine_.files().path().c_str(),
                runtime_.pool().size(), 1e3 * step_seconds_);
    std::printf("%-9s %9s %21s %12s %8s\n", "", "median", "lowest … highest", "undisturbed",
                "limit");
    std::printf("%-9s %8.4f%% %21s %12s %7.2f%%  %s: %.2f ns × %.0f zones\n", "off", off_percent(),
                "", "", kOffLimit, off_percent() <= kOffLimit ? "held" : "MISSED",
                cost_.ns_per_zone_off, zones_);
    for (const Cost& cost : costs_) {
      const auto [low, high] = std::minmax_element(cost.percents.begin(), cost.percents.end());
      std::printf("%-9s %8.2f%% %9.2f%% … %6.2f%% %11.2f%% ", cost.name.c_str(), cost.median(),
                  *low, *high, cost.undisturbed());
      if (cost.limit_percent == 0) {
        std::printf("\n");
        continue;
      }
      std::printf("%7.2f%%  %s\n", cost.limit_percent,
                  cost.median() <= cost.limit_percent ? "held" : "MISSED");
    }
    std::printf("\na record %.0f ns, a span %.0f ns\n", cost_.ns_per_record, cost_.ns_per_span);
  }

  void print_json() const {
    JsonWriter json;
    json.begin_object().key("machine").begin_object().field("device", runtime_.device().name());
    json.field("threads", runtime_.pool().size()).end_object();
    json.key("model").begin_object().field("path", engine_.files().path());
    json.field("step_us", 1e6 * step_seconds_).field("zones", zones_).end_object();
    json.key("limits").begin_object().end_object().key("results").begin_array();
    const auto result = [&](const std::string& name, double value, double limit, const char* unit,
                            const std::vector<double>& samples) {
      json.begin_object().field("name", name).field("value", value).field("unit", unit);
      json.key("limit");
      limit > 0 ? json.value(limit) : json.null();
      json.key("utilization");
      limit > 0 ? json.value(value / limit) : json.null();
      json.field("samples", samples).end_object();
    };
    result("off", off_percent(), kOffLimit, "%", {off_percent()});
    for (const Cost& cost : costs_) {
      result(cost.name, cost.median(), cost.limit_percent, "%", cost.percents);
    }
    result("zone, off", cost_.ns_per_zone_off, 0, "ns", {cost_.ns_per_zone_off});
    result("record", cost_.ns_per_record, 0, "ns", {cost_.ns_per_record});
    result("span", cost_.ns_per_span, 0, "ns", {cost_.ns_per_span});
    std::printf("%s\n", json.end_array().end_object().str().c_str());
  }

 private:
  static constexpr TraceLevel kLevels[] = {TraceLevel::kOff, TraceLevel::kStep, TraceLevel::kOp,
                                           TraceLevel::kKernel};
  static constexpr double kOffLimit = 0.1;

  Result<double> measure() { return seconds_per_step(engine_, runtime_.tracer(), flags_.decode); }

  Result<double> seconds_traced(TraceLevel level) {
    if (level == TraceLevel::kOff) return measure();
    TRY_ASSIGN(const std::unique_ptr<TraceLog> log,
               TraceLog::open(runtime_.tracer(), {path_, level, 0, {}}, runtime_.pool().size()));
    return measure();
  }

  Status count_zones() {
    const auto counter = std::make_shared<Counter>();
    runtime_.tracer().attach(counter);
    TRY(measure());
    runtime_.tracer().detach(counter);
    zones_ = counter->records / std::max(1.0, counter->steps);
    return Status();
  }

  double off_percent() const { return 1e-7 * cost_.ns_per_zone_off * zones_ / step_seconds_; }

  Runtime& runtime_;
  LLMEngine& engine_;
  const TraceBenchFlags& flags_;
  const std::string path_;
  const TraceCost cost_ = measure_trace_cost();
  std::vector<Cost> costs_ = {{"untraced", 0, {}, {}, {}},
                              {"step", 0.5, {}, {}, {}},
                              {"op", 3, {}, {}, {}},
                              {"kernel", 0, {}, {}, {}}};
  double step_seconds_ = 1e30;
  double zones_ = 0;
};

Status bench_trace(const TraceBenchFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  EngineOptions options = flags.engine;
  options.max_model_len = kWarmUp + flags.decode + 1;
  options.max_num_seqs = 1;
  options.enable_prefix_caching = false;
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, options));
  watch_interrupts();
  TraceBench bench(*runtime, *engine, flags);
  TRY(bench.run());
  if (interrupted()) return error("interrupted");
  flags.json ? bench.print_json() : bench.print_table();
  return Status();
}

}  // namespace

void add_bench_trace(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<TraceBenchFlags>();
  CLI::App* command = bench.add_subcommand("trace", "What tracing costs a decode step");
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  command->add_option("--decode", flags->decode, "tokens of a sample")
      ->check(CLI::Range(4, 4096))
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "samples of each level")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_device_flags(*command, flags->device);
  add_load_flags(*command, flags->engine);
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example:\n  tinyvllm bench trace smollm2 --rounds 30");
  command->callback([flags, &action] { action = [flags] { return bench_trace(*flags); }; });
}

}  // namespace tinyvllm
