// tinyvllm bench serve: drives any OpenAI-compatible server, ours or another, and says what its
// clients see, in the words of vLLM's `bench serve`.
#include <CLI/CLI.hpp>
#include <map>
#include <random>
#include <simdjson.h>
#include <sstream>

#include "apps/bench.h"
#include "apps/bench_report.h"
#include "apps/http_load.h"
#include "base/json_writer.h"
#include "report/plot.h"
#include "report/samples.h"
#include "report/text_file.h"

namespace tinyvllm {
namespace {

struct ServeFlags {
  std::string base_url = "http://127.0.0.1:8000";
  std::string endpoint = "/v1/completions";
  std::string model;
  std::string api_key;
  std::string dataset;
  int num_prompts = 32;
  double request_rate = 0;
  int max_concurrency = 0;
  int input_len = 64;
  int output_len = 32;
  double range_ratio = 0;
  bool ignore_eos = true;
  double temperature = 0;
  std::vector<std::string> goodput;
  double timeout = 600;
  uint64_t seed = 0;
  OutputFlags out;
};

struct PromptLine {
  std::string prompt;
  std::string messages;  // JSON, instead of a prompt
  int max_tokens = 0;
};

bool is_chat(const ServeFlags& flags) { return flags.endpoint.find("chat") != std::string::npos; }

// About a token each, in any vocabulary. The first ones differ, so that no prefix is shared.
std::string random_words(int count, std::mt19937_64& random) {
  static const char* const kWords[] = {"the",  "sea",  "of",    "a",    "and",   "time", "light",
                                       "in",   "tree", "house", "is",   "water", "to",   "hand",
                                       "wind", "day",  "on",    "name", "stone", "with"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += str_cat(i > 0 ? " " : "", kWords[random() % std::size(kWords)]);
  }
  return text;
}

// vLLM's: lengths anywhere between (1 - ratio) and (1 + ratio) of what was asked for.
std::vector<PromptLine> random_prompts(const ServeFlags& flags) {
  std::mt19937_64 random(flags.seed);
  const auto length = [&](int middle) {
    const auto low = static_cast<int>(middle * (1 - flags.range_ratio));
    const auto high = static_cast<int>(middle * (1 + flags.range_ratio));
    return std::max(1, std::uniform_int_distribution<int>(low, high)(random));
  };
  std::vector<PromptLine> prompts;
  for (int i = 0; i < flags.num_prompts; ++i) {
    const int words = length(flags.input_len);
    prompts.push_back({random_words(words, random), {}, length(flags.output_len)});
  }
  return prompts;
}

// Lines {"prompt": … | "messages": […], "max_tokens": n}; used again from the start when there are
// fewer than are asked for.
Result<std::vector<PromptLine>> read_prompts(const ServeFlags& flags) {
  TRY_ASSIGN(const std::string text, read_text_file(flags.dataset));
  std::istringstream lines(text);
  std::vector<PromptLine> all;
  int number = 0;
  simdjson::dom::parser parser;
  for (std::string line; std::getline(lines, line);) {
    number += 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    PromptLine prompt{{}, {}, flags.output_len};
    simdjson::dom::element object;
    simdjson::dom::array messages;
    std::string_view value;
    int64_t count = 0;
    if (parser.parse(simdjson::padded_string(line)).get(object) != simdjson::SUCCESS) {
      return error("'", printable(flags.dataset), "', line ", number, ": not JSON");
    }
    if (object["prompt"].get(value) == simdjson::SUCCESS) prompt.prompt = value;
    if (object["messages"].get(messages) == simdjson::SUCCESS) {
      prompt.messages = simdjson::minify(messages);
    }
    for (const char* key : {"max_tokens", "output_len"}) {
      if (object[key].get(count) == simdjson::SUCCESS) prompt.max_tokens = static_cast<int>(count);
    }
    if (prompt.prompt.empty() && prompt.messages.empty()) {
      return error("'", printable(flags.dataset), "', line ", number,
                   ": expected 'prompt' or 'messages'");
    }
    all.push_back(std::move(prompt));
  }
  if (all.empty()) return error("'", printable(flags.dataset), "': no prompts in it");
  std::vector<PromptLine> wanted;
  for (int i = 0; i < flags.num_prompts; ++i)
    wanted.push_back(all[static_cast<size_t>(i) % all.size()]);
  return wanted;
}

Result<std::string> body_of(const PromptLine& line, const std::string& model,
                            const ServeFlags& flags) {
  JsonWriter json;
  json.begin_object().field("model", model).field("max_tokens", line.max_tokens);
  json.field("temperature", flags.temperature).field("stream", true);
  json.key("stream_options").begin_object().field("include_usage", true).end_object();
  if (flags.ignore_eos) json.field("ignore_eos", true);
  std::string tail;  // messages are JSON already
  if (!is_chat(flags)) {
    if (line.prompt.empty()) {
      return error("--endpoint: messages go to /v1/chat/completions, found ", flags.endpoint);
    }
    json.field("prompt", line.prompt);
  } else if (line.messages.empty()) {
    json.key("messages").begin_array().begin_object().field("role", "user");
    json.field("content", line.prompt).end_object().end_array();
  } else {
    tail = str_cat(",\"messages\":", line.messages);
  }
  std::string body = json.end_object().str();
  body.insert(body.size() - 1, tail);
  return body;
}

// Whatever the server calls the first of its models.
Result<std::string> find_model(const ServeFlags& flags) {
  if (!flags.model.empty()) return flags.model;
  TRY_ASSIGN(const std::string body,
             http_get({flags.base_url + "/v1/models", flags.api_key, flags.timeout}));
  simdjson::dom::parser parser;
  std::string_view name;
  if (parser.parse(simdjson::padded_string(body))["data"].at(0)["id"].get(name) !=
      simdjson::SUCCESS) {
    return error(flags.base_url, "/v1/models: expected data[0].id; give the name with --model");
  }
  return std::string(name);
}

Result<Slo> parse_slo(const std::vector<std::string>& words) {
  Slo slo;
  for (const std::string& word : words) {
    const size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    char* end = nullptr;
    const double bound = colon == std::string::npos ? 0 : std::strtod(&word[colon + 1], &end);
    const bool known = name == "ttft" || name == "tpot" || name == "e2el";
    if (!known || end == nullptr || *end != '\0' || bound <= 0) {
      return error("--goodput: expected ttft:MS, tpot:MS or e2el:MS, found '", printable(word),
                   "'");
    }
    slo[name] = bound;
  }
  return slo;
}

void write_results(BenchReport& report, const ServeMetrics& m, bool with_goodput) {
  report.result({"request throughput", "req/s", {m.per_s(m.completed)}});
  report.result({"output throughput", "tok/s", {m.per_s(m.output_tokens)}});
  report.result({"total throughput", "tok/s", {m.per_s(m.input_tokens + m.output_tokens)}});
  if (with_goodput) report.result({"request goodput", "req/s", {m.per_s(m.good)}});
  report.result({"TTFT", "ms", m.ttft_ms});
  report.result({"TPOT", "ms", m.tpot_ms});
  report.result({"ITL", "ms", m.itl_ms});
  report.result({"E2EL", "ms", m.e2e_ms});
}

Figure latency_figure(const ServeMetrics& m) {
  BarChart chart{"Latency percentiles", "ms", {"TTFT", "TPOT", "ITL", "E2EL"}, {}};
  for (const auto& [name, p] : {std::pair{"p50", 50.0}, {"p90", 90.0}, {"p99", 99.0}}) {
    BarChart::Values values{name, {}};
    for (const auto* ms : {&m.ttft_ms, &m.tpot_ms, &m.itl_ms, &m.e2e_ms}) {
      values.values.push_back(percentile(*ms, p));
    }
    chart.series.push_back(std::move(values));
  }
  return Figure{to_svg(chart)};
}

// "3 of 32 requests failed: 2 × Couldn't connect to server, 1 × HTTP status 503".
Status failures(const LoadResult& load, const ServeFlags& flags) {
  std::map<std::string, int> reasons;
  int failed = 0;
  for (const ServedRequest& request : load.requests) {
    if (request.ok) continue;
    failed += 1;
    reasons[request.error] += 1;
  }
  const int unsent = flags.num_prompts - static_cast<int>(load.requests.size());
  if (failed == 0 && (unsent == 0 || interrupted())) return Status();
  std::string text;
  for (const auto& [reason, count] : reasons) {
    text += str_cat(text.empty() ? "" : ", ", count, " × ", reason);
  }
  if (unsent > 0) text += str_cat("; ", unsent, " were never sent");
  return error(failed, " of ", flags.num_prompts, " requests failed: ", text);
}

Status bench_serve(const ServeFlags& flags) {
  watch_interrupts();
  TRY_ASSIGN(const Slo slo, parse_slo(flags.goodput));
  std::vector<PromptLine> prompts = random_prompts(flags);
  if (!flags.dataset.empty()) {
    TRY_ASSIGN(prompts, read_prompts(flags));
  }
  TRY_ASSIGN(const std::string model, find_model(flags));
  std::vector<std::string> bodies;
  for (const PromptLine& line : prompts) {
    TRY_ASSIGN(std::string body, body_of(line, model, flags));
    bodies.push_back(std::move(body));
  }
  BenchReport report("serve", flags.out);
  const std::string rate = flags.request_rate > 0 ? decimal(flags.request_rate, 2) : "inf";
  const std::string at_a_time =
      flags.max_concurrency > 0 ? str_cat(flags.max_concurrency) : "unlimited";
  report.run().machine = {{"url", flags.base_url + flags.endpoint},
                          {"threads", 1.0},
                          {"request_rate", rate},
                          {"max_concurrency", at_a_time}};
  report.run().model = {{"name", model}};
  const LoadResult load = run_load(
      {flags.base_url + flags.endpoint, flags.api_key, flags.timeout}, bodies,
      {flags.request_rate, flags.max_concurrency, flags.seed},
      [&](int done) { report.say(str_cat(done, " of ", flags.num_prompts, " requests")); });
  const ServeMetrics metrics = sum_up(load.requests, load.duration_s, slo);
  report.add(Heading{"Serving Benchmark Result", 1});
  report.add(Paragraph{str_cat(flags.base_url, flags.endpoint, ", model ", printable(model),
                               ", request rate ", rate, "/s, concurrency ", at_a_time, ".")});
  report.add(counts_table(metrics, !slo.empty()));
  report.add(latency_table(metrics));
  report.add(latency_figure(metrics));
  write_results(report, metrics, !slo.empty());
  TRY(report.finish());
  return failures(load, flags);
}

void add_flags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--base-url", flags.base_url, "of the server")->capture_default_str();
  command.add_option("--endpoint", flags.endpoint, "/v1/completions or /v1/chat/completions")
      ->capture_default_str();
  command.add_option("--model", flags.model, "its name there (default: the first of /v1/models)");
  command.add_option("--api-key", flags.api_key, "sent as a bearer token")
      ->envname("OPENAI_API_KEY");
  command.add_option("--num-prompts", flags.num_prompts, "requests to send")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--request-rate", flags.request_rate,
                  "requests a second, at random times (Poisson); default: all at once")
      ->check(CLI::PositiveNumber);
  command.add_option("--max-concurrency", flags.max_concurrency, "requests under way at a time")
      ->check(CLI::PositiveNumber);
  command.add_option("--dataset-path", flags.dataset,
                     "prompts from a file instead of random ones: lines of JSON with prompt or\n"
                     "messages, and max_tokens");
  command.add_option("--random-input-len", flags.input_len, "words of a prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--random-output-len", flags.output_len, "tokens of an answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--random-range-ratio", flags.range_ratio, "how far lengths may be off, 0 to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_flag("--ignore-eos,!--no-ignore-eos", flags.ignore_eos, "answers never end early")
      ->capture_default_str();
  command.add_option("--temperature", flags.temperature, "of sampling")->capture_default_str();
  command.add_option("--goodput", flags.goodput,
                     "count what keeps these bounds in ms: ttft:200 tpot:50 e2el:2000");
  command.add_option("--timeout", flags.timeout, "seconds that a request may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "of prompts and arrivals")->capture_default_str();
  add_output_flags(command, flags.out);
}

}  // namespace

void add_bench_serve(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = bench.add_subcommand("serve", "Drive an OpenAI-compatible server");
  add_flags(*command, *flags);
  command->footer(
      "Examples:\n  tinyvllm bench serve --base-url http://127.0.0.1:8080 --max-concurrency 16\n"
      "  tinyvllm bench serve --request-rate 4 --num-prompts 200 --goodput ttft:500 tpot:50");
  command->callback([flags, &action] { action = [flags] { return bench_serve(*flags); }; });
}

}  // namespace tinyvllm
