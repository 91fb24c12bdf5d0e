// tinyvllm bench trace MODEL: what tracing costs a decode step. At each level a few tokens are
// decoded and traced to a file, in turns with the same untraced, so that whatever else the machine
// does meets all alike. Two things are measured, and added up:
//   in the step   by how much the quartile of its steps is above that of its neighbours' steps.
//                 Others' doings only ever lengthen a step, so the short ones tell best; one that
//                 lengthens all steps, as noting does, is seen there in full.
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
#include <numeric>
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

// Of a few decode steps, in seconds.
struct Sample {
  std::vector<double> steps;
  double writing = 0;  // of all of them
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

// Level i is sample 2i + 1; those before and after it are untraced.
using Round = std::array<Sample, 2 * std::size(kLevels) + 1>;

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

// After a prompt of one token and a few that follow a change of level. What is left to be written
// in the end is written here, and counts like what the tracer's thread wrote meanwhile.
Result<Sample> decode_some(LLMEngine& engine, Tracer& tracer, int decode) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = kWarmUp + decode;
  TRY(engine.add_request(std::vector<int32_t>{1}, sampling));
  for (int i = 0; i < kWarmUp; ++i) engine.step();
  tracer.flush();
  const int64_t writing_before_ns = tracer.writing_ns();
  Sample sample;
  while (engine.has_work()) {
    const Stopwatch clock;
    for (const RequestOutput& output : engine.step()) {
      if (!output.error.empty()) return error(output.error);
    }
    sample.steps.push_back(clock.seconds());
  }
  tracer.flush();
  sample.writing = static_cast<double>(tracer.writing_ns() - writing_before_ns) / 1e9;
  return sample;
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
    for (int i = 0; i < flags_.rounds && !interrupted(); ++i) {
      Round& round = rounds_.emplace_back();
      for (size_t sample = 0; sample < round.size(); ++sample) {
        const bool traced = sample % 2 == 1;
        TRY_ASSIGN(round[sample], traced ? traced_at(kLevels[sample / 2].level) : measure());
      }
    }
    if (interrupted()) return error("interrupted");
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      costs_.push_back(cost_of(i));
      errors_.push_back(standard_error(i));
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
      const Level& level = kLevels[i];
      std::printf("%-9s %9.2f%% ± %5.2f %8.2f%% %8.2f%%", level.name, costs_[i].in_step, errors_[i],
                  costs_[i].beside, costs_[i].both());
      if (level.limit_percent > 0) {
        std::printf(" %7.2f%%  %s%s", level.limit_percent,
                    verdict(costs_[i].both(), level.limit_percent), is_sure(i) ? "" : kNotSure);
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
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      const Cost& cost = costs_[i];
      const std::string name = kLevels[i].name;
      result(name, cost.both(), kLevels[i].limit_percent, "%", {cost.both()});
      result(name + ", in the step", cost.in_step, 0, "%", {cost.in_step});
      result(name + ", its standard error", errors_[i], 0, "%", {errors_[i]});
      result(name + ", beside", cost.beside, 0, "%", {cost.beside});
    }
    result("zone, off", cost_.ns_per_zone_off, 0, "ns", {cost_.ns_per_zone_off});
    result("record", cost_.ns_per_record, 0, "ns", {cost_.ns_per_record});
    result("span", cost_.ns_per_span, 0, "ns", {cost_.ns_per_span});
    std::printf("%s\n", json.end_array().end_object().str().c_str());
  }

 private:
  static constexpr double kOffLimit = 0.1;
  static constexpr const char* kNotSure = ", within the noise: more --rounds tell";
  struct Cost {
    double step = 0;     // untraced, in seconds
    double in_step = 0;  // in percent of that, like the next
    double beside = 0;
    double both() const { return in_step + beside; }
  };

  static const char* verdict(double percent, double limit) {
    return percent <= limit ? "held" : "MISSED";
  }

  // Chance alone would hardly have brought it to the other side of its limit.
  bool is_sure(size_t level) const {
    return std::abs(costs_[level].both() - kLevels[level].limit_percent) > 2 * errors_[level];
  }

  static double quartile(std::vector<double> values) {
    const auto place = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  }

  // Over all rounds but one.
  Cost cost_of(size_t level, size_t without = SIZE_MAX) const {
    std::vector<double> traced;
    std::vector<double> untraced;
    double writing = 0;
    const auto append = [](std::vector<double>& to, const Sample& sample) {
      to.insert(to.end(), sample.steps.begin(), sample.steps.end());
    };
    for (size_t i = 0; i < rounds_.size(); ++i) {
      if (i == without) continue;
      const Sample& sample = rounds_[i][2 * level + 1];
      append(traced, sample);
      append(untraced, rounds_[i][2 * level]);
      append(untraced, rounds_[i][2 * level + 2]);
      writing += sample.writing;
    }
    const double step = quartile(std::move(untraced));
    const auto steps = static_cast<double>(traced.size());
    return {step, 100 * (quartile(std::move(traced)) / step - 1), 100 * writing / steps / step};
  }
  // Of what is seen in the step, by leaving out each round in turn.
  double standard_error(size_t level) const {
    std::vector<double> values;
    for (size_t i = 0; i < rounds_.size(); ++i) values.push_back(cost_of(level, i).in_step);
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double sum = 0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return std::sqrt(sum * (count - 1) / count);
  }

  Result<Sample> measure() { return decode_some(engine_, runtime_.tracer(), flags_.decode); }

  Result<Sample> traced_at(TraceLevel level) {
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

  double step_seconds() const { return costs_.front().step; }
  double off_percent() const { return 1e-7 * cost_.ns_per_zone_off * zones_ / step_seconds(); }

  Runtime& runtime_;
  LLMEngine& engine_;
  const TraceBenchFlags& flags_;
  const std::string path_;
  const TraceCost cost_ = measure_trace_cost();
  std::vector<Round> rounds_;
  std::vector<Cost> costs_;
  std::vector<double> errors_;
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
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  add_device_flags(*command, flags->device);
  add_load_flags(*command, flags->engine);
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example:\n  tinyvllm bench trace smollm2 --rounds 30");
  command->callback([flags, &action] { action = [flags] { return bench_trace(*flags); }; });
}

}  // namespace tinyvllm
