// tinyvllm chat [MODEL]: a conversation in the terminal.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <signal.h>
#include <unistd.h>

#include "apps/chat_commands.h"
#include "apps/chat_session.h"
#include "apps/command.h"
#include "apps/conversation.h"
#include "apps/device_flags.h"
#include "apps/engine_flags.h"
#include "apps/line_editor.h"
#include "apps/sampling_flags.h"
#include "apps/trace_flags.h"

namespace tinyvllm {
namespace {

constexpr double kTemperature = 0.7;  // where the model recommends none: /regenerate should differ

struct ChatCommandFlags {
  std::string model = kDefaultModel;
  ChatFlags chat;
  DeviceFlags device;
  EngineOptions engine;
  TraceFlags trace;
  SamplingFlags sampling;
};

std::filesystem::path history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      state != nullptr && *state != '\0'
          ? std::filesystem::path(state)
          : std::filesystem::path(home != nullptr ? home : ".") / ".local/state";
  return folder / "tinyvllm/chat_history";
}

// Signals go to the thread that waits for keys, and never to a worker.
Result<std::unique_ptr<Runtime>> create_quiet_runtime(const DeviceFlags& flags) {
  sigset_t ours;
  sigset_t before;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGWINCH, SIGCONT}) sigaddset(&ours, signal);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  Result<std::unique_ptr<Runtime>> runtime = create_runtime(flags);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return runtime;
}

Status respond(ChatSession& session, const std::string& message, bool& quit) {
  if (message.starts_with("//")) return session.ask(message.substr(1));
  if (message.starts_with('/')) return run_chat_command(session, message, quit);
  return session.ask(message);
}

Status converse(ChatSession& session) {
  LineEditor editor(history_file());
  if (editor.interactive()) std::fprintf(stderr, "/help lists commands, Ctrl-D leaves\n");
  bool quit = false;
  while (!quit) {
    clear_interrupt();
    std::string message;
    const LineEditor::Outcome outcome = editor.read_message(message);
    if (outcome == LineEditor::Outcome::kEnd) break;
    if (outcome == LineEditor::Outcome::kInterrupted) continue;
    if (message.find_first_not_of(" \t\n") == std::string::npos) continue;
    const Status status = respond(session, message, quit);
    TRY(session.health());
    if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  }
  clear_interrupt();
  return Status();
}

Status chat(const ChatCommandFlags& flags) {
  TRY(validate(flags.sampling.values));
  if (flags.sampling.has("n")) return error("n: a chat has one answer at a time");
  TRY_ASSIGN(const std::string path, resolve_model(flags.model, flags.engine));
  watch_interrupts(/*second_kills=*/false);
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_quiet_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<TraceLog> trace,
             open_trace(*runtime, flags.trace, "chat", path));
  TRY_ASSIGN(const std::unique_ptr<LLMEngine> engine, load_engine(*runtime, path, flags.engine));
  TRY_ASSIGN(const SamplingParams sampling, sampling_params(*engine, flags.sampling, kTemperature));
  TRY_ASSIGN(const ChatFormatter format, ChatFormatter::open(*engine, flags.chat.chat_template));
  ChatSession session(*engine, format, sampling, flags.model, flags.chat.system);
  return converse(session);
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "Talk in the terminal");
  const auto flags = std::make_shared<ChatCommandFlags>();
  flags->sampling.values.max_tokens = kNoTokenLimit;
  command->add_option("MODEL,-m,--model", flags->model, "a .gguf file, a folder or an alias")
      ->capture_default_str();
  command->add_option("--system", flags->chat.system, "a system message before the conversation");
  command->add_option("--chat-template", flags->chat.chat_template,
                      "a Jinja file to use instead of the model's template");
  add_engine_flags(*command, flags->engine);
  add_device_flags(*command, flags->device);
  add_trace_flags(*command, flags->trace);
  add_sampling_flags(*command, flags->sampling);
  command->footer(
      "Sampling fields that are not given are the model's own (generation_config); without those,\n"
      "--temperature is 0.7. Answers go to the end of the context.\n\n"
      "Examples:\n"
      "  tinyvllm chat\n"
      "  tinyvllm chat model.gguf --system \"You are a pirate.\" --temperature 0.2\n"
      "  printf 'Hi\\n/stats\\n' | tinyvllm chat");
  command->callback([flags, &action] { action = [flags] { return chat(*flags); }; });
}

}  // namespace tinyvllm
