#include "apps/bench_session.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "base/log.h"
#include "engine/machine_limits.h"
#include "ops/attention.h"

namespace tinyvllm {
namespace {

constexpr char kTinyPreset[] = "tiny";

std::string megabytes(double bytes) { return decimal(bytes / 1e6) + " MB"; }

std::string gigabytes_per_s(double rate) { return decimal(rate / 1e9) + " GB/s"; }

// Beside what was measured, the first row's memory, what the device is said to do.
void add_spec(Table& table, double memory_bytes_per_s) {
  table.columns.insert(table.columns.begin() + 2, {"Spec"});
  for (std::vector<std::string>& row : table.rows) row.insert(row.begin() + 2, "-");
  table.rows.front()[2] = gigabytes_per_s(memory_bytes_per_s);
}

}  // namespace

void add_bench_flags(CLI::App& command, BenchFlags& flags) {
  command.add_option(
      "MODEL", flags.model,
      "a .gguf file, a Hugging Face folder, an alias, or with --load-format dummy a\n"
      "preset (default: the tiny preset, which takes seconds)");
  add_device_flags(command, flags.device);
  const auto count = [&](const char* name, int& value, int least, const char* what) {
    command.add_option(name, value, what)->check(CLI::Range(least, 1 << 20))->capture_default_str();
  };
  count("--repeat", flags.repeat, 1, "samples of each measurement; tables show their median");
  count("--warmup", flags.warmup, 0, "runs before the first measurement");
  count("--tokens", flags.tokens, 2, "tokens of each answer");
  count("--max-context", flags.max_context, 32, "longest prompt of the context tables");
  count("--max-concurrency", flags.max_concurrency, 1, "most requests at a time");
  command.add_option("--seconds", flags.seconds, "after so long, what is left is measured once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--remeasure", flags.remeasure, "measure this machine's limits again");
  add_load_flags(command, flags.engine);
  add_trace_flags(command, flags.trace);
  add_output_flags(command, flags.out);
}

BenchSession::BenchSession(const std::string& name, const std::string& title,
                           const BenchFlags& flags)
    : title_(title), flags_(flags), report_(name, flags.out) {}

Result<std::unique_ptr<BenchSession>> BenchSession::open(const std::string& name,
                                                         const std::string& title,
                                                         const BenchFlags& flags) {
  watch_interrupts();
  std::unique_ptr<BenchSession> session(new BenchSession(name, title, flags));
  TRY(session->load());
  TRY(session->measure_limits());
  session->write_limits();
  TRY(session->warm_up());
  return session;
}

Status BenchSession::load() {
  TRY_ASSIGN(runtime_, create_runtime(flags_.device));
  EngineOptions options = flags_.engine;
  std::string name = flags_.model;
  if (name.empty()) {
    name = kTinyPreset;
    options.load_format = "dummy";
  }
  TRY_ASSIGN(const std::string path, resolve_model(name, options));
  model_name_ = options.load_format == "dummy" ? str_cat(name, ", random weights") : name;
  TRY_ASSIGN(trace_, open_trace(*runtime_, flags_.trace, "bench " + report_.run().bench, path));
  options.max_num_seqs = std::max(64, flags_.max_concurrency);
  before_load_ = process_memory();
  free_before_load_ = runtime_->device().available_memory();
  report_.say("loading " + name);
  TRY_ASSIGN(engine_, load_engine(*runtime_, path, options));
  after_load_ = process_memory();
  TRY_ASSIGN(summary_, summarize(engine_->files()));
  write_head();
  return Status();
}

double BenchSession::device_growth() const {
  return static_cast<double>(free_before_load_) -
         static_cast<double>(runtime_->device().available_memory());
}

Status BenchSession::measure_limits() {
  report_.say("measuring this machine");
  std::optional<MachineLimits> limits;
  if (!flags_.remeasure) limits = cached_limits(*runtime_);
  if (!limits) {
    Result<MachineLimits> measured = tinyvllm::measure_limits(*runtime_);
    if (!measured.ok()) log_warning(measured.message());  // then nothing has a limit
    limits = measured.ok() ? measured.value() : MachineLimits();
  }
  TRY_ASSIGN(roof_, make_roof(*runtime_, *limits, info().weight_bytes));
  work_ = std::make_unique<WorkLimit>(roof_, info(), summary_);
  return Status();
}

Status BenchSession::warm_up() {
  for (int i = 0; i < flags_.warmup; ++i) {
    report_.say(str_cat("warming up, ", i + 1, " of ", flags_.warmup));
    const Result<Load> load = serve(*engine_, {random_prompt(32)}, 4);
    if (!load.ok() && !interrupted()) return load.error();
  }
  return Status();
}

void BenchSession::write_head() {
  const MachineKey key = machine_key(*runtime_);
  const ModelInfo& model = info();
  const std::string device = key.words();
  const double growth = after_load_.resident - before_load_.resident;
  report_.add(Heading{str_cat("tinyvllm ", title_), 1});
  report_.add(
      Code{str_cat("Device: ", device, "\nMemory before: ", megabytes(before_load_.resident),
                   "\n\nLoading model from ", model_name_, "...\nModel: ", model.hidden, " dim, ",
                   model.layers, " layers\nMemory after load: ", megabytes(after_load_.resident),
                   " (", growth < 0 ? "" : "+", megabytes(growth), ")")});
  const std::string dimensions =
      str_cat(model.hidden, " dim, ", model.layers, " layers, ", summary_.heads.value_or(0),
              " heads, ", summary_.kv_heads.value_or(0), " KV heads");
  const double bytes = static_cast<double>(summary_.total.bytes);
  report_.add(Heading{"Test Configuration"});
  report_.add(Table{{{"Parameter", Column::kLeft}, {"Value", Column::kLeft}},
                    {{"Device", device},
                     {"Model", model_name_},
                     {"Model Size", human_bytes(bytes)},
                     {"Dimensions", dimensions},
                     {"Dtype", main_dtype(summary_)},
                     {"Date", report_.run().date},
                     {"Version", report_.run().version}}});
  BenchRun& run = report_.run();
  run.machine = {{"device", runtime_->device().name()},
                 {"cpu", key.cpu},
                 {"threads", static_cast<double>(key.threads)},
                 {"isa", key.isa}};
  run.model = {{"name", model_name_},
               {"architecture", model.architecture},
               {"layers", static_cast<double>(model.layers)},
               {"dim", static_cast<double>(model.hidden)},
               {"dtype", main_dtype(summary_)},
               {"bytes", bytes},
               {"bytes_per_token", static_cast<double>(model.weight_bytes)}};
}

// Seed rows first: bandwidth, size, what follows from them.
void BenchSession::write_limits() {
  const MachineLimits& l = roof_.limits;
  const bool cached = roof_.weights_bytes_per_s > l.read_bytes_per_s;
  const double kv = work_->kv_bytes();
  Table table{{{"Metric", Column::kLeft}, {"Value"}, {"Calculation", Column::kLeft}}, {}};
  const auto row = [&](const char* name, const std::string& value, const std::string& how) {
    table.rows.push_back({name, value, how});
  };
  const bool card = l.copy_bytes_per_s > 0;
  row("Memory Bandwidth", gigabytes_per_s(l.read_bytes_per_s),
      str_cat("measured: best of several read loops over ", card ? "4 GiB" : "1 GiB"));
  if (cached) {
    row("Cache Bandwidth", gigabytes_per_s(roof_.weights_bytes_per_s),
        "measured: the weights fit the last cache, so it is their limit");
  }
  if (card) {
    row("Copy Bandwidth", gigabytes_per_s(l.copy_bytes_per_s),
        "measured: within the card, each byte read and written");
    row("Upload Bandwidth", gigabytes_per_s(l.upload_bytes_per_s),
        "measured: from pinned memory of the host");
    row("Matmul throughput", decimal(l.flops_per_s / 1e12) + " TFLOP/s",
        "measured: bf16, summed in float, best of 4096^3 and 8192^3");
  } else {
    row("FMA throughput", decimal(l.flops_per_s / 1e9) + " GFLOP/s",
        "measured: best register tile");
    row("Int8 throughput", decimal(l.int8_ops_per_s / 1e9) + " GOP/s",
        "measured: best register tile");
  }
  row("Model Size", human_bytes(static_cast<double>(summary_.total.bytes)), "all weights");
  row("Bytes per token", human_bytes(work_->token_bytes()), "weights that one decoded token reads");
  row("KV bytes per token", human_bytes(kv), "all layers; read again for every later token");
  row("Max tok/s (memory-bound)", decimal(work_->max_decode_tok_s()) + " tok/s",
      "bandwidth / bytes per token");
  row("Min TPOT", decimal(1e3 / work_->max_decode_tok_s(), 3) + " ms", "1 / max tok/s");
  const char* multiply = card ? "matmul" : work_->multiply_rate() == l.flops_per_s ? "FMA" : "int8";
  row("Max prompt tok/s (compute-bound)", decimal(work_->max_prompt_tok_s()) + " tok/s",
      str_cat(multiply, " throughput / ", decimal(work_->prompt_flops() / 1e6),
              " MFLOP per token"));
  const double spec = runtime_->device().spec().memory_bytes_per_s;
  if (spec > 0) add_spec(table, spec);
  report_.add(Heading{"Theoretical Limits"});
  report_.add(std::move(table));
  if (spec <= 0) {
    report_.add(Paragraph{
        "No specification beside them: the system does not say how fast this memory is built."});
  }
  report_.run().limits = {{"read_gb_s", l.read_bytes_per_s / 1e9},
                          {"weights_gb_s", roof_.weights_bytes_per_s / 1e9},
                          {"float_gflop_s", l.flops_per_s / 1e9},
                          {"int8_gop_s", l.int8_ops_per_s / 1e9},
                          {"max_decode_tok_s", work_->max_decode_tok_s()},
                          {"min_tpot_ms", 1e3 / work_->max_decode_tok_s()},
                          {"max_prompt_tok_s", work_->max_prompt_tok_s()}};
  if (spec > 0) report_.run().limits.push_back({"spec_read_gb_s", spec / 1e9});
}

double BenchSession::kv_block_bytes() const {
  double bytes = 0;
  for (const KvSpec& spec : info().kv_groups) {
    bytes += static_cast<double>(ops::kv_block_bytes(spec, flags_.engine.block_size));
  }
  return bytes;
}

Prompt BenchSession::random_prompt(int tokens) {
  return random_tokens(tokens, info().vocab_size, 1000 * next_seed_++);
}

std::vector<int> BenchSession::contexts() const {
  const int longest = std::min(flags_.max_context, engine_->max_model_len() - flags_.tokens);
  std::vector<int> all = {32, 128, 256};
  for (int length = 512; length <= longest; length *= 2) all.push_back(length);
  std::erase_if(all, [&](int length) { return length > longest; });
  return all;
}

Result<std::vector<Load>> BenchSession::repeated(const std::string& what,
                                                 const std::function<Result<Load>()>& sample) {
  std::vector<Load> loads;
  while (static_cast<int>(loads.size()) < flags_.repeat) {
    if (interrupted() || (!loads.empty() && clock_.seconds() > flags_.seconds)) break;
    report_.say(str_cat(what, ", sample ", loads.size() + 1, " of ", flags_.repeat));
    Result<Load> load = sample();
    if (interrupted()) break;
    TRY_ASSIGN(Load done, std::move(load));
    loads.push_back(std::move(done));
  }
  return loads;
}

Result<std::vector<Load>> BenchSession::repeated(const std::string& what, int requests, int prompt,
                                                 int tokens) {
  return repeated(what, [&]() -> Result<Load> {
    std::vector<Prompt> prompts;
    for (int i = 0; i < requests; ++i) prompts.push_back(random_prompt(prompt));
    return serve(*engine_, prompts, tokens);
  });
}

void BenchSession::check_limit(const std::string& what, double utilization) {
  constexpr int kTries = 3;  // a machine that was busy may be less so now
  for (int i = 0; utilization > 1 && i < kTries && !interrupted(); ++i) {
    const Result<MachineLimits> limits = tinyvllm::measure_limits(*runtime_, roof_.limits);
    if (!limits.ok()) break;
    const Result<Roof> again = make_roof(*runtime_, limits.value(), info().weight_bytes);
    if (!again.ok()) break;
    const Roof& now = again.value();
    const double more = std::max({now.weights_bytes_per_s / roof_.weights_bytes_per_s,
                                  now.limits.flops_per_s / roof_.limits.flops_per_s,
                                  now.limits.int8_ops_per_s / roof_.limits.int8_ops_per_s});
    if (more > 1) utilization /= more;
  }
  if (utilization > 1) report_.above_limit(what, utilization);
}

std::vector<double> map_samples(const std::vector<Load>& loads,
                                const std::function<double(const Load&)>& value) {
  std::vector<double> samples;
  for (const Load& load : loads) samples.push_back(value(load));
  return samples;
}

Status run_sections(const std::string& name, const std::string& title, const BenchFlags& flags,
                    const std::vector<BenchSection>& sections) {
  TRY_ASSIGN(const std::unique_ptr<BenchSession> session, BenchSession::open(name, title, flags));
  for (const BenchSection section : sections) {
    if (interrupted()) break;
    TRY(section(*session));
  }
  return session->report().finish();
}

void add_model_bench(CLI::App& bench, Action& action, const std::string& name,
                     const std::string& title, const std::string& what,
                     std::vector<BenchSection> sections) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = bench.add_subcommand(name, what);
  add_bench_flags(*command, *flags);
  command->footer(str_cat("Examples:\n  tinyvllm bench ", name, "\n  tinyvllm bench ", name,
                          " smollm2 --html report.html\n  tinyvllm bench ", name,
                          " tinyllama-1.1b --load-format dummy --dtype Q4_0 --output run.json"));
  command->callback(
      [=, &action] { action = [=] { return run_sections(name, title, *flags, sections); }; });
}

}  // namespace tinyvllm
