// tinyvllm bench model MODEL: tokens a second of prompts and of decoding, measured as llama-bench
// does: prompts of N random tokens at once, and N tokens one by one from an empty context. With
// --batch several sequences decode together.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/bench.h"
#include "apps/bench_load.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "apps/trace_flags.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/llm_engine.h"
#include "engine/machine_limits.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

struct ModelFlags {
  std::string model = kDefaultModel;
  std::vector<int> prompts = {128, 512};
  int decode = 64;
  std::vector<int> batches = {1};
  int repeat = 3;
  DeviceFlags device;
  bool no_limits = false;
  bool json = false;
  EngineOptions engine;
  TraceFlags trace;
};

constexpr const char* kTokens = "tok/s";

struct Measured {
  std::string name;             // "prompt 128", "decode 64", "decode 64 × 4"
  std::vector<double> samples;  // tokens a second, ascending
  double limit = 0;             // tokens a second that memory allows; 0: not known
  const char* unit = kTokens;

  double median() const { return tinyvllm::median(samples); }
};

// Seconds from `batch` requests to their last token: prompts of `prompt` tokens, `decode` tokens
// each, chosen greedily and never ending early.
Result<double> time_requests(LLMEngine& engine, int batch, int prompt, int decode, uint64_t seed) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = decode;
  const Stopwatch clock;
  for (int i = 0; i < batch; ++i) {
    const int64_t vocab_size = engine.model().info().vocab_size;
    TRY(engine.add_request(random_tokens(prompt, vocab_size, seed + static_cast<uint64_t>(i)),
                           sampling));
  }
  while (engine.has_work()) {
    for (const RequestOutput& output : engine.step()) {
      if (!output.error.empty()) return error(output.error);
      if (interrupted()) return error("interrupted");
    }
  }
  return clock.seconds();
}

Result<Measured> measure(LLMEngine& engine, const ModelFlags& flags, int batch, int prompt,
                         int decode) {
  Measured result;
  const int tokens = prompt > 1 ? prompt : batch * decode;
  TRY(time_requests(engine, batch, prompt, std::min(decode, 2), 0));  // pages, caches, threads
  for (int i = 1; i <= flags.repeat; ++i) {
    TRY_ASSIGN(const double seconds,
               time_requests(engine, batch, prompt, decode, static_cast<uint64_t>(1000 * i)));
    result.samples.push_back(tokens / seconds);
  }
  std::sort(result.samples.begin(), result.samples.end());
  return result;
}

Result<std::vector<Measured>> measure_all(LLMEngine& engine, const ModelFlags& flags,
                                          double read_bytes_per_s) {
  std::vector<Measured> results;
  for (const int prompt : flags.prompts) {
    TRY_ASSIGN(Measured m, measure(engine, flags, 1, prompt, 1));
    m.name = str_cat("prompt ", prompt);
    results.push_back(std::move(m));
  }
  for (const int batch : flags.batches) {
    if (flags.decode < 1) break;
    TRY_ASSIGN(Measured m, measure(engine, flags, batch, 1, flags.decode));
    m.name = str_cat("decode ", flags.decode);
    if (batch > 1) m.name += str_cat(" × ", batch);
    const auto weights = static_cast<double>(engine.model().info().weight_bytes);
    if (batch == 1) m.limit = read_bytes_per_s / weights;  // every token reads all weights
    results.push_back(std::move(m));
  }
  return results;
}

// Weights over the bus to a card, the whole way from the file's map to where kernels read them.
std::optional<Measured> measured_load(const LLMEngine& engine, double upload_bytes_per_s) {
  const LLMEngine::Loading& loading = engine.loading();
  if (upload_bytes_per_s == 0 || loading.seconds == 0) return std::nullopt;
  const double rate = static_cast<double>(loading.weights.bytes) / loading.seconds;
  return Measured{"load", {rate / 1e9}, upload_bytes_per_s / 1e9, "GB/s"};
}

void print_table(const LLMEngine& engine, const std::vector<Measured>& results, int threads) {
  std::printf("%s, %d threads\n\n%-16s %12s %21s %8s\n", engine.files().path().c_str(), threads, "",
              "tokens/s", "lowest … highest", "limit");
  for (const Measured& m : results) {
    std::printf("%-16s %12.1f %10.1f … %-8.1f", m.name.c_str(), m.median(), m.samples.front(),
                m.samples.back());
    if (m.limit > 0) std::printf(" %7.0f%%", 100 * m.median() / m.limit);
    std::printf("%s\n", m.unit == kTokens ? "" : str_cat("  in ", m.unit).c_str());
  }
}

void print_json(const LLMEngine& engine, const std::vector<Measured>& results, int threads,
                double read_bytes_per_s) {
  const ModelInfo& info = engine.model().info();
  JsonWriter json;
  json.begin_object().key("machine").begin_object().field("threads", threads).end_object();
  json.key("model").begin_object().field("path", engine.files().path());
  json.field("architecture", info.architecture).field("file_bytes", engine.files().file_bytes());
  json.field("bytes_per_token", info.weight_bytes).end_object();
  json.key("limits").begin_object();
  if (read_bytes_per_s > 0) json.field("read_gb_s", read_bytes_per_s / 1e9);
  json.end_object().key("results").begin_array();
  for (const Measured& m : results) {
    json.begin_object().field("name", m.name).field("value", m.median()).field("unit", m.unit);
    json.key("limit");
    m.limit > 0 ? json.value(m.limit) : json.null();
    json.key("utilization");
    m.limit > 0 ? json.value(m.median() / m.limit) : json.null();
    json.field("samples", m.samples).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.str().c_str());
}

Status check_flags(const ModelFlags& flags) {
  const auto positive = [](const char* name, const std::vector<int>& values) -> Status {
    for (const int value : values) {
      if (value < 1) return error(name, ": expected at least 1, found ", value);
    }
    return Status();
  };
  TRY(positive("--prompt", flags.prompts));
  TRY(positive("--batch", flags.batches));
  return positive("--repeat", {flags.repeat});
}

Status bench_model(const ModelFlags& flags) {
  TRY(check_flags(flags));
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<TraceLog> trace,
             open_trace(*runtime, flags.trace, "bench model", path));
  EngineOptions options = flags.engine;
  int longest = flags.decode + 1;
  for (const int prompt : flags.prompts) longest = std::max(longest, prompt + 1);
  options.max_model_len = longest;
  options.max_num_batched_tokens = std::max(runtime->device().step_tokens(), longest);
  options.max_num_seqs = *std::max_element(flags.batches.begin(), flags.batches.end());
  options.enable_prefix_caching = false;
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, options));

  MachineLimits limits;
  if (!flags.no_limits) {
    TRY_ASSIGN(limits, measure_limits(*runtime, cached_limits(*runtime).value_or(MachineLimits())));
  }
  const double read_bytes_per_s = limits.read_bytes_per_s;
  watch_interrupts();
  TRY_ASSIGN(std::vector<Measured> results, measure_all(*engine, flags, read_bytes_per_s));
  if (auto load = measured_load(*engine, limits.upload_bytes_per_s)) {
    results.insert(results.begin(), std::move(*load));
  }
  const int threads = runtime->pool().size();
  if (flags.json) {
    print_json(*engine, results, threads, read_bytes_per_s);
  } else {
    print_table(*engine, results, threads);
  }
  return Status();
}

}  // namespace

void add_bench_model(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = bench.add_subcommand("model", "Prompts and decoding of one model");
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  command->add_option("--prompt", flags->prompts, "lengths of prompts, comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--decode", flags->decode, "tokens to decode; 0: none")
      ->capture_default_str();
  command->add_option("--batch", flags->batches, "sequences that decode together")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--repeat", flags->repeat, "samples of each")->capture_default_str();
  add_device_flags(*command, flags->device);
  add_load_flags(*command, flags->engine);
  add_trace_flags(*command, flags->trace);
  command->add_flag("--no-limits", flags->no_limits, "leave out measuring the machine");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example:\n  tinyvllm bench model smollm2 --prompt 128 --decode 64");
  command->callback([flags, &action] { action = [flags] { return bench_model(*flags); }; });
}

}  // namespace tinyvllm
