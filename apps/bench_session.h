// The frame of every bench that runs a model: its flags, the model loaded and warmed up, this
// machine's limits measured, the head of the report written. A bench adds its sections.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench_load.h"
#include "apps/bench_report.h"
#include "apps/device_flags.h"
#include "apps/process_memory.h"
#include "apps/roof.h"
#include "apps/trace_flags.h"
#include "base/stopwatch.h"

namespace tinyvllm {

struct BenchFlags {
  std::string model;  // empty: the tiny preset
  DeviceFlags device;
  int repeat = 3;
  int warmup = 2;
  int tokens = 16;        // of each answer
  int max_context = 512;  // of the context tables
  int max_concurrency = 64;
  double seconds = 45;  // when these are over, everything left is measured once
  bool remeasure = false;
  OutputFlags out;
  EngineOptions engine;
  TraceFlags trace;
};
void add_bench_flags(CLI::App& command, BenchFlags& flags);

class BenchSession {
 public:
  // A name for machines ("throughput") and a title for people ("Throughput").
  static Result<std::unique_ptr<BenchSession>> open(const std::string& name,
                                                    const std::string& title,
                                                    const BenchFlags& flags);

  const BenchFlags& flags() const { return flags_; }
  BenchReport& report() { return report_; }
  Runtime& runtime() { return *runtime_; }
  LLMEngine& engine() { return *engine_; }
  const ModelInfo& info() const { return engine_->model().info(); }
  const ModelSummary& summary() const { return summary_; }
  const Roof& roof() const { return roof_; }
  const WorkLimit& work() const { return *work_; }
  const ProcessMemory& before_load() const { return before_load_; }
  const ProcessMemory& after_load() const { return after_load_; }
  double device_growth() const;   // of what is taken of a card's memory, since before load
  double kv_block_bytes() const;  // of all groups

  // A prompt of so many random tokens, another one each time.
  Prompt random_prompt(int tokens);
  std::vector<int> contexts() const;  // 32, 128, 256, 512 … as far as model and flags go

  // What `sample` gives, as often as the flags say, once when time is up; less, perhaps nothing,
  // after Ctrl-C.
  Result<std::vector<Load>> repeated(const std::string& what,
                                     const std::function<Result<Load>()>& sample);
  Result<std::vector<Load>> repeated(const std::string& what, int requests, int prompt, int tokens);

  // Better than the machine can is measured again before it is believed.
  void check_limit(const std::string& what, double utilization);
  void check_limit(const BenchResult& result) {
    check_limit(result.name, result.utilization().value_or(0));
  }

 private:
  BenchSession(const std::string& name, const std::string& title, const BenchFlags& flags);
  Status load();
  Status measure_limits();
  Status warm_up();
  void write_head();
  void write_limits();

  const std::string title_;
  const BenchFlags flags_;
  BenchReport report_;
  Stopwatch clock_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<TraceLog> trace_;
  std::unique_ptr<LLMEngine> engine_;
  std::string model_name_;
  ModelSummary summary_;
  Roof roof_;
  std::unique_ptr<WorkLimit> work_;
  ProcessMemory before_load_, after_load_;
  size_t free_before_load_ = 0;
  uint64_t next_seed_ = 1;
};

std::vector<double> map_samples(const std::vector<Load>& loads,
                                const std::function<double(const Load&)>& value);

// Runs the sections one after the other, until Ctrl-C, and finishes the report.
using BenchSection = Status (*)(BenchSession&);
Status run_sections(const std::string& name, const std::string& title, const BenchFlags& flags,
                    const std::vector<BenchSection>& sections);

// bench NAME, made of those sections.
void add_model_bench(CLI::App& bench, Action& action, const std::string& name,
                     const std::string& title, const std::string& what,
                     std::vector<BenchSection> sections);

Status throughput_section(BenchSession& session);
Status latency_section(BenchSession& session);
Status memory_section(BenchSession& session);
Status scalability_section(BenchSession& session);
Status breakdown_section(BenchSession& session);

}  // namespace tinyvllm
