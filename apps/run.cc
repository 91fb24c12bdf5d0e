// tinyvllm run [MODEL] [PROMPT]: streams one answer.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <unistd.h>

#include "apps/command.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "engine/llm_engine.h"

namespace tinyvllm {
namespace {

struct RunFlags {
  std::vector<std::string> words;  // [MODEL] [PROMPT]
  std::string model;
  std::string prompt;
  bool has_prompt = false;
  bool raw = false;
  bool json = false;
  int threads = 0;
  EngineOptions engine;
  SamplingParams sampling;
};

struct Answer {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;
  std::string text;
  FinishReason finish = FinishReason::kNone;
  double load_s = 0;
  int cached_tokens = 0;
  Timings timings;

  double prefill_rate() const {
    return timings.ttft_s > 0 ? static_cast<double>(prompt_ids.size()) / timings.ttft_s : 0;
  }
  double decode_rate() const {
    if (ids.size() < 2) return 0;
    return static_cast<double>(ids.size() - 1) / (timings.total_s - timings.ttft_s);
  }
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
      (words.size() == 2 || flags.engine.load_format == "dummy" || looks_like_model(words[0]))) {
    flags.model = words.front();
    words.erase(words.begin());
  }
  if (flags.model.empty()) flags.model = kDefaultModel;
  if (!flags.has_prompt && !words.empty()) {
    flags.prompt = words.front();
    flags.has_prompt = true;
    words.erase(words.begin());
  }
  if (!words.empty()) return error("'", printable(words.front()), "': the prompt was given twice");
  if (flags.has_prompt) return Status();
  if (isatty(STDIN_FILENO) == 1) {
    return error("there is no prompt: give one as an argument, with -p, or on stdin");
  }
  flags.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  return Status();
}

// SmolLM2's conversation format, written out by hand until templates are read from model files: a
// model that was trained with another one needs --raw.
std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const std::string& prompt) {
  const auto control = [&](const char* text) { return tokenizer.encode(text, {false, true}); };
  std::vector<int32_t> ids = control(
      "<|im_start|>system\n"
      "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\n");
  const std::vector<int32_t> body = tokenizer.encode(prompt, {false, false});
  const std::vector<int32_t> end = control("<|im_end|>\n<|im_start|>assistant\n");
  ids.insert(ids.end(), body.begin(), body.end());
  ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

// Steps the engine until the request is done or Ctrl-C, writing text as it becomes certain.
Status generate(LLMEngine& engine, const RunFlags& flags, Answer& answer) {
  TRY_ASSIGN(const SequenceId request, engine.add_request(answer.prompt_ids, flags.sampling));
  while (engine.has_work()) {
    if (interrupted()) {
      engine.abort(request);
      answer.finish = FinishReason::kAbort;
      break;
    }
    for (const RequestOutput& output : engine.step()) {
      if (!output.error.empty()) return error(output.error);
      for (const SampledToken& token : output.tokens) answer.ids.push_back(token.token);
      answer.finish = output.finish;
      answer.timings = output.timings;
      answer.cached_tokens = output.cached_tokens;
      answer.text += output.text;
      if (flags.json) continue;
      std::fwrite(output.text.data(), 1, output.text.size(), stdout);
      std::fflush(stdout);
    }
  }
  return Status();
}

void print_json(const Answer& answer) {
  JsonWriter json;
  json.begin_object().field("text", answer.text).field("token_ids", answer.ids);
  json.field("prompt_token_ids", answer.prompt_ids);
  json.field("finish_reason", to_string(answer.finish));
  json.key("usage").begin_object();
  json.field("prompt_tokens", answer.prompt_ids.size());
  json.field("completion_tokens", answer.ids.size());
  json.field("cached_tokens", answer.cached_tokens).end_object();
  json.key("timings").begin_object();
  json.field("load_s", answer.load_s).field("ttft_s", answer.timings.ttft_s);
  json.field("prefill_tok_s", answer.prefill_rate()).field("decode_tok_s", answer.decode_rate());
  json.key("limit_percent").null();  // nothing has measured this machine's limit yet
  json.end_object().end_object();
  std::printf("%s\n", json.str().c_str());
}

void print_closing_line(const Answer& answer) {
  const bool colour = use_colour(STDERR_FILENO);
  std::fprintf(stderr,
               "%sprompt %zu tokens, %.0f tok/s | first token %.2f s | generated %zu tokens, "
               "%.1f tok/s%s%s\n",
               colour ? "\033[2m" : "", answer.prompt_ids.size(), answer.prefill_rate(),
               answer.timings.ttft_s, answer.ids.size(), answer.decode_rate(),
               answer.finish == FinishReason::kAbort ? " | interrupted" : "",
               colour ? "\033[0m" : "");
}

Status run(RunFlags& flags) {
  const Stopwatch clock;
  TRY(sort_words(flags));
  if (flags.prompt.empty()) return error("the prompt is empty");
  TRY(validate(flags.sampling));
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  watch_interrupts();
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create({flags.threads}));
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine,
             LLMEngine::load(*runtime, path, flags.engine));
  Answer answer;
  answer.load_s = clock.seconds();
  answer.prompt_ids = flags.raw ? engine->tokenizer().encode(flags.prompt, {})
                                : encode_chat(engine->tokenizer(), flags.prompt);
  TRY(generate(*engine, flags, answer));
  if (flags.json) {
    print_json(answer);
  } else {
    std::printf("\n");
    std::fflush(stdout);
    print_closing_line(answer);
  }
  return Status();
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Stream one answer");
  const auto flags = std::make_shared<RunFlags>();
  flags->sampling.temperature = 0;
  flags->sampling.max_tokens = 512;
  command->add_option("WORDS", flags->words, "[MODEL] [PROMPT]; the prompt may come on stdin")
      ->expected(0, 2);
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
  command->add_flag("--raw", flags->raw, "continue the prompt as it is, without a chat format");
  command->add_option("-n,--max-tokens", flags->sampling.max_tokens, "stop after so many tokens")
      ->capture_default_str();
  command->add_option("--temperature", flags->sampling.temperature, "0 takes the likeliest token")
      ->capture_default_str();
  command->add_option("--seed", flags->sampling.seed, "the same seed gives the same answer")
      ->capture_default_str();
  command->add_option("-c,--max-model-len", flags->engine.max_model_len,
                      "tokens of context (default: what the model was trained for)");
  command
      ->add_option("--max-num-batched-tokens", flags->engine.max_num_batched_tokens,
                   "prompt tokens per step")
      ->capture_default_str();
  command->add_option("--block-size", flags->engine.block_size, "tokens per block of the KV cache")
      ->capture_default_str();
  add_load_flags(*command, flags->engine);
  command->add_option("-t,--threads", flags->threads, "default: the physical cores");
  command->add_flag("--json", flags->json, "one JSON object instead of text");
  command->footer(
      "Examples:\n"
      "  tinyvllm run \"Why is the sky blue?\"\n"
      "  tinyvllm run smollm2 \"Write a haiku\" --temperature 0.7 --seed 3\n"
      "  cat question.txt | tinyvllm run model.gguf --json");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tinyvllm
