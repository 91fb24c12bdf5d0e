// tinyvllm bench trace MODEL: what tracing costs a decode step. At each level some tokens are
// decoded, and of two steps that follow one another one is traced to a file and one is not, so that
// whatever else the machine does meets both alike. Two things are measured, and added up:
//   in the step   by how much the traced one takes longer: of a round's pairs the middle half,
//                 so that a step which somebody else interrupted does not count; of rounds all.
//   beside it     the processor's time of handing out records and writing. Where no core is spare,
//                 it is taken from one of the steps' threads: all of it is charged.
// The same without any trace is measured too, as if it were a level: what it is away from nothing
// is noise. What a trace costs that is off is too little to be measured that way, and is worked
// out: nanoseconds of a zone that nobody listens to, times zones of a step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

#include "apps/bench.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "apps/progress.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/llm_engine.h"
#include "report/samples.h"
#include "telemetry/trace_file.h"

namespace tinyvllm {
namespace {

constexpr int kWarmUp = 5;  // steps, the prompt's among them

struct TraceBenchFlags {
  std::string model = kDefaultModel;
  int pairs = 32;
  int rounds = 150;  // some two minutes, and good to 0.1%
  DeviceFlags device;
  bool json = false;
  EngineOptions engine;
};

struct Level {
  TraceLevel level;
  const char* name;
  double limit_percent;  // that it must stay below; 0: no limit
};
constexpr Level kLevels[] = {{TraceLevel::kOff, "untraced", 0},
                             {TraceLevel::kStep, "step", 0.5},
                             {TraceLevel::kOp, "op", 3},
                             {TraceLevel::kKernel, "kernel", 0}};

// Of one level, by the round.
struct Samples {
  std::vector<double> step;     // untraced, in seconds
  std::vector<double> in_step;  // in percent of that, like the next
  std::vector<double> beside;
  std::vector<double> together() const {
    std::vector<double> sums = in_step;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += beside[i];
    return sums;
  }
};

// Of their mean.
double standard_error(const std::vector<double>& values) {
  return deviation(values) / std::sqrt(static_cast<double>(values.size() - 1));
}

// The mean of the middle half: nothing that happens now and then has a say in it.
double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto quarter = static_cast<ptrdiff_t>(values.size() / 4);
  return mean({values.begin() + quarter, values.end() - quarter});
}

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
    Samples first;
    TRY(decode_in_turns(TraceLevel::kOff, false, first));  // pages, caches, threads
    ProgressBar bar("decoding");
    for (int round = 0; round < flags_.rounds; ++round) {
      bar.update("", round, flags_.rounds);
      for (size_t i = 0; i < std::size(kLevels); ++i) {
        TRY(decode_in_turns(kLevels[i].level, /*traced_first=*/round % 2 == 1, samples_[i]));
        if (interrupted()) return error("interrupted");
      }
    }
    return count_zones();
  }

  void print_table() const {
    std::printf("%s, %d threads, a decode step of %.2f ms\n\n", engine_.files().path().c_str(),
                runtime_.pool().size(), 1e3 * step_seconds());
    std::printf("%-9s %18s %9s %9s %8s\n", "", "in the step", "beside", "together", "limit");
    std::printf("%-9s %18s %9s %8.3f%% %7.2f%%  %s: %.2f ns × %.0f zones\n", "off", "", "",
                off_percent(), kOffLimit, verdict(off_percent(), kOffLimit), cost_.ns_per_zone_off,
                zones_);
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      const Samples& samples = samples_[i];
      const double limit = kLevels[i].limit_percent;
      const double together = mean(samples.together());
      const double error = standard_error(samples.together());
      std::printf("%-9s %9.2f%% ± %5.2f %8.2f%% %8.2f%%", kLevels[i].name, mean(samples.in_step),
                  standard_error(samples.in_step), mean(samples.beside), together);
      // Unsure: chance alone may have brought it to this side of its limit.
      if (limit > 0) {
        std::printf(" %7.2f%%  %s%s", limit, verdict(together, limit),
                    std::abs(together - limit) > 2 * error ? "" : kNotSure);
      }
      std::printf("\n");
    }
    std::printf("\na record %.0f ns, a span %.0f ns\n", cost_.ns_per_record, cost_.ns_per_span);
  }

  void print_json() const {
    JsonWriter json;
    json.begin_object().key("machine").begin_object().field("device", runtime_.device().name());
    json.field("threads", runtime_.pool().size()).end_object();
    json.key("model").begin_object().field("path", engine_.files().path());
    json.field("step_us", 1e6 * step_seconds()).field("zones", zones_).end_object();
    json.key("limits").begin_object().end_object().key("results").begin_array();
    const auto result = [&](const std::string& name, double limit, const char* unit,
                            const std::vector<double>& samples) {
      const double value = mean(samples);
      json.begin_object().field("name", name).field("value", value).field("unit", unit);
      json.key("limit");
      limit > 0 ? json.value(limit) : json.null();
      json.key("utilization");
      limit > 0 ? json.value(value / limit) : json.null();
      json.field("samples", samples).end_object();
    };
    result("off", kOffLimit, "%", {off_percent()});
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      const std::string name = kLevels[i].name;
      result(name, kLevels[i].limit_percent, "%", samples_[i].together());
      result(name + ", in the step", 0, "%", samples_[i].in_step);
      result(name + ", beside", 0, "%", samples_[i].beside);
    }
    result("zone, off", 0, "ns", {cost_.ns_per_zone_off});
    result("record", 0, "ns", {cost_.ns_per_record});
    result("span", 0, "ns", {cost_.ns_per_span});
    std::printf("%s\n", json.end_array().end_object().str().c_str());
  }

 private:
  static constexpr double kOffLimit = 0.1;
  static constexpr const char* kNotSure = ", within the noise: more --rounds tell";

  static const char* verdict(double percent, double limit) {
    return percent <= limit ? "held" : "MISSED";
  }

  // Seconds, or why not.
  Result<double> step() {
    const Stopwatch clock;
    for (const RequestOutput& output : engine_.step()) {
      if (!output.error.empty()) return error(output.error);
    }
    return clock.seconds();
  }

  // After a prompt of one token and a few steps that follow a change of level. What is left to be
  // written in the end is written here, and counts like what the tracer's thread wrote meanwhile.
  Status decode_in_turns(TraceLevel level, bool traced_first, Samples& samples) {
    Tracer& tracer = runtime_.tracer();
    std::unique_ptr<TraceLog> log;
    if (level != TraceLevel::kOff) {
      TRY_ASSIGN(log, TraceLog::open(tracer, {path_, level, 0, {}}, runtime_.pool().size()));
    }
    TRY(add_request());
    for (int i = 0; i < kWarmUp; ++i) TRY(step());
    tracer.flush();
    const int64_t writing_before_ns = tracer.writing_ns();
    std::vector<double> untraced;
    std::vector<double> longer;
    for (int pair = 0; engine_.has_work(); ++pair) {
      // Steps become longer as the text does: every second pair goes the other way round.
      const bool is_traced_first = traced_first != (pair % 2 == 1);
      double seconds[2];  // untraced, traced
      for (const bool traced : {is_traced_first, !is_traced_first}) {
        tracer.hold(!traced);
        TRY_ASSIGN(seconds[traced ? 1 : 0], step());
      }
      untraced.push_back(seconds[0]);
      longer.push_back(seconds[1] - seconds[0]);
    }
    tracer.hold(false);
    tracer.flush();
    const double writing = static_cast<double>(tracer.writing_ns() - writing_before_ns) / 1e9;
    const double usual = middle(untraced);
    samples.step.push_back(usual);
    samples.in_step.push_back(100 * middle(longer) / usual);
    samples.beside.push_back(100 * writing / static_cast<double>(longer.size()) / usual);
    return Status();
  }

  Status add_request() {
    SamplingParams sampling;
    sampling.temperature = 0;
    sampling.ignore_eos = true;
    sampling.max_tokens = kWarmUp + 2 * flags_.pairs;
    TRY(engine_.add_request(std::vector<int32_t>{1}, sampling));
    return Status();
  }

  Status count_zones() {
    const auto counter = std::make_shared<Counter>();
    runtime_.tracer().attach(counter);
    TRY(add_request());
    while (engine_.has_work()) TRY(step());
    runtime_.tracer().detach(counter);
    zones_ = counter->records / std::max(1.0, counter->steps);
    return Status();
  }

  double step_seconds() const { return mean(samples_.front().step); }
  double off_percent() const { return 1e-7 * cost_.ns_per_zone_off * zones_ / step_seconds(); }

  Runtime& runtime_;
  LLMEngine& engine_;
  const TraceBenchFlags& flags_;
  const std::string path_;
  const TraceCost cost_ = measure_trace_cost();
  std::array<Samples, std::size(kLevels)> samples_;
  double zones_ = 0;
};

Status bench_trace(const TraceBenchFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  EngineOptions options = flags.engine;
  options.max_model_len = kWarmUp + 2 * flags.pairs + 1;
  options.max_num_seqs = 1;
  options.enable_prefix_caching = false;
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, options));
  watch_interrupts();
  TraceBench bench(*runtime, *engine, flags);
  TRY(bench.run());
  flags.json ? bench.print_json() : bench.print_table();
  return Status();
}

}  // namespace

void add_bench_trace(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<TraceBenchFlags>();
  CLI::App* command = bench.add_subcommand("trace", "What tracing costs a decode step");
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  command->add_option("--pairs", flags->pairs, "of steps, one traced and one not, in a round")
      ->check(CLI::Range(2, 2048))
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "of every level")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  add_device_flags(*command, flags->device);
  add_load_flags(*command, flags->engine);
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example:\n  tinyvllm bench trace smollm2 --rounds 30");
  command->callback([flags, &action] { action = [flags] { return bench_trace(*flags); }; });
}

}  // namespace tinyvllm
