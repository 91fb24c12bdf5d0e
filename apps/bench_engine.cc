// tinyvllm bench engine MODEL: what continuous batching is worth. Decoding of one request and of
// many at a time, through AsyncEngine as a server would; beside llama.cpp's llama-batched-bench in
// the same run, where there is one; and the process's memory after few requests and after many.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <future>
#include <simdjson.h>

#include "apps/bench.h"
#include "apps/bench_load.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "apps/process_memory.h"
#include "apps/trace_flags.h"
#include "base/json_writer.h"
#include "engine/async_engine.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

using Clock = std::chrono::steady_clock;

struct EngineBenchFlags {
  std::string model = kDefaultModel;
  int batch = 16;
  int prompt = 64;
  int decode = 64;
  int repeat = 3;
  int requests = 1000;
  DeviceFlags device;
  std::string peer;
  bool json = false;
  EngineOptions engine;
  TraceFlags trace;
};

struct Measured {
  std::string name;
  const char* unit = "";
  std::vector<double> samples;
  std::optional<double> floor;  // what it must reach, in the same unit

  double median() const { return tinyvllm::median(samples); }
};

// `count` requests at once. Tokens a second from when all have their first one to the end.
Result<double> decode_rate(AsyncEngine& engine, int count, int prompt, int decode, uint64_t seed) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = decode;
  struct Tally {  // of the delivery thread
    int started = 0, over = 0, tokens = 0;
    Clock::time_point all_started, end;
    std::string error;
    std::promise<void> done;
  } tally;
  for (int i = 0; i < count; ++i) {
    const auto tokens =
        random_tokens(prompt, engine.model().vocab_size, seed + static_cast<uint64_t>(i));
    TRY(engine.submit(tokens, sampling, {}, [&tally, count](RequestOutput&& news) {
      if (tally.started == count) tally.tokens += static_cast<int>(news.tokens.size());
      const bool first = news.completion_tokens == static_cast<int>(news.tokens.size());
      if (first && ++tally.started == count) tally.all_started = Clock::now();
      if (!news.error.empty()) tally.error = news.error;
      if (news.finish == FinishReason::kNone || ++tally.over < count) return;
      tally.end = Clock::now();
      tally.done.set_value();
    }));
  }
  tally.done.get_future().wait();
  if (!tally.error.empty()) return error(tally.error);
  return tally.tokens / std::chrono::duration<double>(tally.end - tally.all_started).count();
}

// llama.cpp's own measurement of the same: prompts first, then all sequences a token at a time.
Result<double> peer_rate(const EngineBenchFlags& flags, const std::string& path, int threads) {
  const std::string command =
      str_cat("'", flags.peer, "' -m '", path, "' -c ", flags.batch * (flags.prompt + flags.decode),
              " -npp ", flags.prompt, " -ntg ", flags.decode, " -npl ", flags.batch, " -t ",
              threads, " --output-format jsonl 2>/dev/null");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return error("cannot run '", printable(flags.peer), "'");
  std::array<char, 4096> line;
  double rate = 0;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    simdjson::dom::parser parser;
    simdjson::dom::element row;
    double found = 0;
    if (parser.parse(std::string(line.data())).get(row) == simdjson::SUCCESS &&
        row["speed_tg"].get(found) == simdjson::SUCCESS) {
      rate = found;
    }
  }
  pclose(pipe);
  if (rate == 0) return error("'", printable(flags.peer), "' printed no speed_tg");
  return rate;
}

// In turns, so that whatever else the machine does meets all alike; a ratio is of one turn.
Result<std::vector<Measured>> measure_decoding(AsyncEngine& engine, const EngineBenchFlags& flags,
                                               const std::string& path, int threads) {
  Measured one{"decode × 1", "tok/s", {}, std::nullopt};
  Measured many{str_cat("decode × ", flags.batch), "tok/s", {}, std::nullopt};
  Measured ratio{str_cat("× ", flags.batch, " to × 1"), "times", {}, 2.0};
  Measured peer{str_cat("llama.cpp × ", flags.batch), "tok/s", {}, std::nullopt};
  Measured to_peer{"to llama.cpp", "times", {}, 1.0};
  TRY(decode_rate(engine, flags.batch, flags.prompt, 2, 0));  // pages, caches, threads
  for (int i = 1; i <= flags.repeat; ++i) {
    const auto rate = [&](int count) {
      return decode_rate(engine, count, flags.prompt, flags.decode,
                         static_cast<uint64_t>(1000 * i));
    };
    TRY_ASSIGN(const double alone, rate(1));
    TRY_ASSIGN(const double together, rate(flags.batch));
    one.samples.push_back(alone);
    many.samples.push_back(together);
    ratio.samples.push_back(together / alone);
    if (flags.peer.empty()) continue;
    TRY_ASSIGN(const double theirs, peer_rate(flags, path, threads));
    peer.samples.push_back(theirs);
    to_peer.samples.push_back(together / theirs);
  }
  std::vector<Measured> results = {one, many, ratio};
  if (!flags.peer.empty()) results.insert(results.end(), {peer, to_peer});
  return results;
}

// Memory after the first ten requests and after all: whatever a request leaves behind shows.
Result<std::vector<Measured>> measure_memory(AsyncEngine& engine, const EngineBenchFlags& flags) {
  constexpr int kFew = 10;
  TRY(decode_rate(engine, std::min(kFew, flags.requests), 8, 4, 1));
  Measured few{
      str_cat("memory after ", kFew), "MB", {process_memory().resident / 1e6}, std::nullopt};
  for (int done = kFew; done < flags.requests;) {
    const int count = std::min(flags.batch, flags.requests - done);
    TRY(decode_rate(engine, count, 8, 4, static_cast<uint64_t>(done)));
    done += count;
  }
  Measured many{str_cat("memory after ", flags.requests),
                "MB",
                {process_memory().resident / 1e6},
                std::nullopt};
  return std::vector<Measured>{few, many};
}

void print_table(const std::vector<Measured>& results) {
  std::printf("%-20s %10s %-6s %21s %10s\n", "", "median", "", "lowest … highest", "floor");
  for (const Measured& m : results) {
    const auto [low, high] = std::minmax_element(m.samples.begin(), m.samples.end());
    std::printf("%-20s %10.1f %-6s %10.1f … %-8.1f", m.name.c_str(), m.median(), m.unit, *low,
                *high);
    if (m.floor) std::printf(" %10.1f %s", *m.floor, m.median() >= *m.floor ? "reached" : "MISSED");
    std::printf("\n");
  }
}

void print_json(const AsyncEngine& engine, const std::vector<Measured>& results, int threads) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object().field("threads", threads).end_object();
  json.key("model").begin_object().field("architecture", engine.model().architecture);
  json.field("bytes_per_token", engine.model().weight_bytes).end_object();
  json.key("limits").begin_object().end_object().key("results").begin_array();
  for (const Measured& m : results) {
    json.begin_object().field("name", m.name).field("value", m.median()).field("unit", m.unit);
    json.key("limit").null().key("utilization").null().key("floor");
    m.floor ? json.value(*m.floor) : json.null();
    json.field("samples", m.samples).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.str().c_str());
}

Status bench_engine(const EngineBenchFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<TraceLog> trace,
             open_trace(*runtime, flags.trace, "bench engine", path));
  EngineOptions options = flags.engine;
  options.max_model_len = std::max(16, flags.prompt + flags.decode);
  options.max_num_seqs = flags.batch;  // a cache for these and no more: all of it is soon in use
  TRY_ASSIGN(std::unique_ptr<LLMEngine> loaded, load_engine(*runtime, path, options));
  AsyncEngine engine(std::move(loaded));
  const int threads = runtime->pool().size();

  TRY_ASSIGN(std::vector<Measured> results, measure_decoding(engine, flags, path, threads));
  TRY_ASSIGN(const std::vector<Measured> memory, measure_memory(engine, flags));
  results.insert(results.end(), memory.begin(), memory.end());
  flags.json ? print_json(engine, results, threads) : print_table(results);
  return Status();
}

}  // namespace

void add_bench_engine(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<EngineBenchFlags>();
  CLI::App* command = bench.add_subcommand("engine", "Many requests at a time, beside one");
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  const auto count = [&](const char* name, int& value, const char* what) {
    command->add_option(name, value, what)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  };
  count("--batch", flags->batch, "requests at a time");
  count("--prompt", flags->prompt, "tokens of each prompt");
  count("--decode", flags->decode, "tokens of each answer");
  count("--repeat", flags->repeat, "samples of each");
  count("--requests", flags->requests, "short requests before memory is looked at again");
  command->add_option("--peer", flags->peer, "llama.cpp's llama-batched-bench, to run beside");
  add_device_flags(*command, flags->device);
  add_load_flags(*command, flags->engine);
  add_trace_flags(*command, flags->trace);
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example:\n  tinyvllm bench engine smollm2 --peer llama.cpp/build/bin/llama-batched-bench");
  command->callback([flags, &action] { action = [flags] { return bench_engine(*flags); }; });
}

}  // namespace tinyvllm
