// tinyvllm run [MODEL] [PROMPT]: streams one answer.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "apps/command.h"
#include "apps/conversation.h"
#include "apps/decode_meter.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "apps/reply.h"
#include "apps/run_batch.h"
#include "apps/sampling_flags.h"
#include "apps/text_input.h"
#include "apps/trace_flags.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/llm_engine.h"
#include "engine/machine_limits.h"
#include "telemetry/profiler.h"

namespace tinyvllm {
namespace {

struct RunFlags {
  std::vector<std::string> words;  // [MODEL] [PROMPT]
  std::string model;
  std::string prompt;
  bool has_prompt = false;
  std::string prompts;  // a file of them, and one for the answers
  std::string output;
  ChatFlags chat;
  bool json = false;
  DeviceFlags device;
  bool profile = false;
  EngineOptions engine;
  TraceFlags trace;
  SamplingFlags sampling;
};

bool looks_like_model(const std::string& word) {
  if (resolve_model(word).ok()) return true;
  const bool one_word = word.find_first_of(" \t\n") == std::string::npos;
  return one_word && (word.ends_with(".gguf") || word.find('/') != std::string::npos);
}

// One word may be either: `run smollm2` asks on stdin, `run "Why?"` asks the default model.
Status sort_words(RunFlags& flags) {
  std::vector<std::string> words = flags.words;
  if (flags.model.empty() && !words.empty() &&
      (words.size() >= 2 || flags.engine.load_format == "dummy" || !flags.prompts.empty() ||
       looks_like_model(words[0]))) {
    flags.model = words.front();
    words.erase(words.begin());
  }
  if (flags.model.empty()) flags.model = kDefaultModel;
  if (!flags.has_prompt && !words.empty()) {
    flags.prompt = words.front();
    flags.has_prompt = true;
    words.erase(words.begin());
  }
  if (!flags.prompts.empty()) {
    if (flags.has_prompt) return error("--prompts: expected no other prompt besides the file");
    return Status();
  }
  if (!words.empty()) {
    return error("'", printable(words.front()),
                 "': expected one prompt; several words need quotes around them");
  }
  if (flags.has_prompt && flags.prompt != "-") return Status();
  if (!flags.has_prompt && isatty(STDIN_FILENO) == 1) {
    return error("there is no prompt: give one as an argument, with -p, or on stdin");
  }
  TRY_ASSIGN(flags.prompt, read_stdin());
  // A shell's echo ends with a newline that nobody meant.
  if (!flags.chat.raw && flags.prompt.ends_with('\n')) flags.prompt.pop_back();
  return Status();
}

// Text on stdout as it becomes certain. Several answers are written one after the other: the first
// one streams, the others wait for their turn.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(size_t answers) : waiting_(answers) {
    if (answers > 1) print_title();
  }

  void add(const RequestOutput& news) {
    Waiting& answer = waiting_[news.answer];
    answer.text += news.text;
    answer.done = news.finish != FinishReason::kNone;
    while (current_ < waiting_.size()) {
      write(std::exchange(waiting_[current_].text, {}));
      if (!waiting_[current_].done || ++current_ == waiting_.size()) break;
      write("\n\n");
      print_title();
    }
    std::fflush(stdout);
  }

 private:
  struct Waiting {
    std::string text;
    bool done = false;
  };

  static void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
  void print_title() const { std::printf("[%zu of %zu]\n", current_ + 1, waiting_.size()); }

  std::vector<Waiting> waiting_;
  size_t current_ = 0;
};

// Steps the engine until the request is done or Ctrl-C.
Status generate(LLMEngine& engine, const SamplingParams& sampling, bool print, Reply& reply) {
  TRY_ASSIGN(const RequestId request, engine.add_request(reply.prompt_ids, sampling));
  reply.expect(sampling);
  std::optional<AnswerPrinter> printer;
  if (print) printer.emplace(reply.answers.size());
  DecodeMeter meter(engine.model(), sampling.n);
  while (engine.has_work()) {
    if (interrupted()) {
      engine.abort(request);
      for (Answer& answer : reply.answers) {
        if (answer.finish == FinishReason::kNone) answer.finish = FinishReason::kAbort;
      }
      break;
    }
    const std::vector<RequestOutput> outputs = engine.step();
    meter.after_step(outputs);
    for (const RequestOutput& output : outputs) {
      if (!output.error.empty()) return error(output.error);
      reply.add(output);
      if (!printer) continue;
      TraceContext trace = engine.delivery_trace();
      const PartScope part(trace, TraceLevel::kOp, "generation_loop", "token_callback");
      printer->add(output);
    }
  }
  reply.decode_tok_s = meter.tokens_per_s();
  reply.gigabytes_per_s = meter.bytes_per_s() / 1e9;
  return Status();
}

// How much of the memory's speed decoding reached. A machine that was never measured is measured
// now, and so is one that decoded faster than it was measured to read: it was busy then.
std::optional<MachineLimits> limits_for(Runtime& runtime, double bytes_per_s) {
  const std::optional<MachineLimits> cached = cached_limits(runtime);
  if (interrupted() || (cached && bytes_per_s <= cached->read_bytes_per_s)) return cached;
  Result<MachineLimits> measured = measure_limits(runtime, cached.value_or(MachineLimits()));
  if (measured.ok()) return measured.value();
  return cached;
}

void print_closing_line(const Reply& reply, const std::optional<MachineLimits>& limits) {
  const bool colour = use_colour(STDERR_FILENO);
  std::fprintf(stderr,
               "%sprompt %zu tokens, %.0f tok/s | first token %.2f s | generated %zu tokens, "
               "%.1f tok/s | %.1f GB/s",
               colour ? "\033[2m" : "", reply.prompt_ids.size(), reply.prefill_tok_s(),
               reply.ttft_s, reply.completion_tokens(), reply.decode_tok_s, reply.gigabytes_per_s);
  if (limits) {
    std::fprintf(stderr, ", %.0f%% of this machine's %.1f", reply.limit_percent.value_or(0),
                 limits->read_bytes_per_s / 1e9);
  }
  const bool aborted = reply.answers.back().finish == FinishReason::kAbort;
  std::fprintf(stderr, "%s%s\n", aborted ? " | interrupted" : "", colour ? "\033[0m" : "");
}

// On stderr, beside the answer.
void print_profile(Profiler& profiler, Runtime& runtime) {
  profiler.stop();
  std::fprintf(stderr, "\n%s", to_text(profiler.table(limits_of(runtime))).c_str());
}

// --prompts FILE: what decides the answers besides the lines, in words.
std::string batch_settings(const RunFlags& flags, const std::string& path) {
  std::string words = std::filesystem::path(path).filename().string();
  if (words.empty()) words = path;
  for (const SamplingField& field : sampling_fields()) {
    words += str_cat("|", field.name, "=", sampling_field_text(flags.sampling.values, field));
  }
  return str_cat(words, "|", flags.chat.raw, "|", flags.chat.system, "|", flags.chat.chat_template);
}

Status run_prompts(const RunFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(BatchFiles files,
             open_batch(flags.prompts, flags.output, batch_settings(flags, path)));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<TraceLog> trace, open_trace(*runtime, flags.trace, "run", path));
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, flags.engine));
  std::optional<Profiler> profiler;
  if (flags.profile) profiler.emplace(runtime->tracer());
  BatchOptions options;
  TRY_ASSIGN(options.defaults, sampling_params(*engine, flags.sampling, 0));
  options.max_num_seqs = flags.engine.max_num_seqs;
  options.json = flags.json;
  // A model without a template still answers prompts with --raw; what needs one says so.
  const Result<ChatFormatter> format = ChatFormatter::open(*engine, flags.chat.chat_template);
  options.encode = [&](const BatchLine& line) -> Result<std::vector<int32_t>> {
    if (flags.chat.raw && line.conversation.empty()) {
      return engine->tokenizer().encode(line.prompt, {});
    }
    if (!format.ok()) return format.error();
    if (!line.conversation.empty()) {
      TRY_ASSIGN(const ChatInput conversation, ChatInput::from_json(line.conversation));
      return format.value().encode(conversation);
    }
    std::vector<ChatMessage> messages;
    if (!flags.chat.system.empty()) messages.push_back({"system", flags.chat.system});
    messages.push_back({"user", line.prompt});
    return format.value().encode(messages);
  };
  TRY(run_batch(*engine, std::move(files), options));
  if (profiler) print_profile(*profiler, *runtime);
  return Status();
}

// One prompt.
Status run_prompt(const RunFlags& flags) {
  const Stopwatch clock;
  if (flags.prompt.empty()) return error("the prompt is empty");
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<TraceLog> trace, open_trace(*runtime, flags.trace, "run", path));
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, flags.engine));
  std::optional<Profiler> profiler;
  if (flags.profile) profiler.emplace(runtime->tracer());
  TRY_ASSIGN(const SamplingParams sampling, sampling_params(*engine, flags.sampling, 0));
  Reply reply;
  reply.load_s = clock.seconds();
  TRY_ASSIGN(reply.prompt_ids, encode_question(*engine, flags.chat, flags.prompt));
  TRY(generate(*engine, sampling, !flags.json, reply));
  if (!flags.json) {
    std::printf("\n");
    std::fflush(stdout);
  }
  const auto limits = limits_for(*runtime, reply.gigabytes_per_s * 1e9);
  if (limits) reply.limit_percent = 1e11 * reply.gigabytes_per_s / limits->read_bytes_per_s;
  if (!flags.json) print_closing_line(reply, limits);
  if (profiler) print_profile(*profiler, *runtime);
  if (!flags.json) return Status();
  JsonWriter json;
  json.begin_object();
  write_reply(json, reply);
  std::printf("%s\n", json.end_object().str().c_str());
  return Status();
}

Status run(RunFlags& flags) {
  TRY(sort_words(flags));
  TRY(validate(flags.sampling.values));
  watch_interrupts();
  return flags.prompts.empty() ? run_prompt(flags) : run_prompts(flags);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Stream one answer");
  const auto flags = std::make_shared<RunFlags>();
  flags->sampling.values.max_tokens = 512;
  command
      ->add_option("WORDS", flags->words,
                   "[MODEL] [PROMPT]; the prompt may come on stdin, as - or from a pipe")
      ->expected(0, -1);  // a third one is refused by name, an unknown flag before it first
  command->add_option("-m,--model", flags->model, "a .gguf file or an alias (default: smollm2)");
  command
      ->add_option_function<std::string>(
          "-p,--prompt",
          [flags](const std::string& text) {
            flags->prompt = text;
            flags->has_prompt = true;
          },
          "what to ask")
      ->type_name("TEXT");
  CLI::Option* prompts =
      command->add_option("--prompts", flags->prompts,
                          "a file of prompts: a JSON object a line, each with a prompt or\n"
                          "messages, and any sampling fields (top_p, …)");
  CLI::Option* output = command->add_option(
      "--output", flags->output, "where their answers go, a line each; continued if it is there");
  prompts->type_name("IN.jsonl")->needs(output);
  output->type_name("OUT.jsonl")->needs(prompts);
  add_chat_flags(*command, flags->chat);
  add_engine_flags(*command, flags->engine);
  add_device_flags(*command, flags->device);
  command->add_flag("--json", flags->json, "one JSON object instead of text");
  command->add_flag("--profile", flags->profile,
                    "afterwards, on stderr: what every op reached of this machine's limits");
  add_trace_flags(*command, flags->trace);
  add_sampling_flags(*command, flags->sampling);
  command->footer(
      "Sampling fields that are not given are the model's own (generation_config); without those,\n"
      "the likeliest token is taken each time, unless a flag such as --top-p or --n asks for\n"
      "sampling (then --temperature is 1), and --max-tokens is 512.\n\n"
      "Examples:\n"
      "  tinyvllm run \"Why is the sky blue?\"\n"
      "  tinyvllm run smollm2 \"Write a haiku\" --temperature 0.7 --seed 3\n"
      "  tinyvllm run \"Where are you?\" --system \"You are a pirate.\"\n"
      "  tinyvllm run smollm2 --prompts questions.jsonl --output answers.jsonl -n 200\n"
      "  tinyvllm run \"Why?\" --profile --trace run.jsonl --trace-level op\n"
      "  cat question.txt | tinyvllm run model.gguf --json");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tinyvllm
