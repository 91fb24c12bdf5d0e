// tinyvllm template MODEL | FILE.jinja: renders the conversation on stdin, {"messages": […],
// "tools": […], "add_generation_prompt": true, …}, with the model's own template.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "apps/command.h"
#include "apps/conversation.h"
#include "apps/text_input.h"
#include "base/json_writer.h"
#include "text/chat_template.h"

namespace tinyvllm {
namespace {

struct TemplateFlags {
  std::string source;
  std::string chat_template;
  bool json = false;
};

void print_json(const ChatPrompt& prompt, const std::optional<std::vector<int32_t>>& ids) {
  JsonWriter json;
  json.begin_object().field("text", prompt.text).key("template_spans").begin_array();
  for (const Span& span : prompt.template_spans) {
    json.begin_array().value(span.begin).value(span.end).end_array();
  }
  json.end_array();
  if (ids.has_value()) json.field("ids", *ids);
  std::printf("%s\n", json.end_object().str().c_str());
}

Result<ChatInput> read_conversation() {
  TRY_ASSIGN(const std::string json, read_stdin());
  Result<ChatInput> input = ChatInput::from_json(json);
  if (!input.ok()) return error("the conversation on standard input: ", input.message());
  return input;
}

Status render(const TemplateFlags& flags) {
  std::optional<std::vector<int32_t>> ids;
  ChatPrompt prompt;
  if (flags.source.ends_with(".jinja")) {
    TRY_ASSIGN(const std::string source, read_file(flags.source));
    TRY_ASSIGN(const ChatTemplate compiled, ChatTemplate::compile(source, {}));
    TRY_ASSIGN(const ChatInput input, read_conversation());
    TRY_ASSIGN(prompt, compiled.render(input));
  } else {
    TRY_ASSIGN(const std::string path, resolve_model(flags.source));
    TRY_ASSIGN(const std::unique_ptr<ModelFiles> files, ModelFiles::open_tokenizer(path));
    TRY_ASSIGN(const ChatTemplate compiled,
               open_chat_template(files->tokenizer(), flags.chat_template));
    TRY_ASSIGN(const ChatInput input, read_conversation());
    TRY_ASSIGN(prompt, compiled.render(input));
    if (flags
            .json) {  // text alone needs no tokenizer, and one that is not supported is no obstacle
      TRY_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(files->tokenizer()));
      ids = ChatEncoder(*tokenizer, compiled).encode(prompt);
    }
  }
  if (flags.json) {
    print_json(prompt, ids);
  } else {
    std::fwrite(prompt.text.data(), 1, prompt.text.size(), stdout);
  }
  return Status();
}

}  // namespace

void add_template(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("template", "Render a conversation as the model reads it");
  const auto flags = std::make_shared<TemplateFlags>();
  command
      ->add_option("MODEL", flags->source,
                   "a model whose template is meant, or a template: FILE.jinja")
      ->required();
  command->add_option("--chat-template", flags->chat_template,
                      "this file instead of the model's template");
  command->add_flag(
      "--json", flags->json,
      "print one JSON object: text, template_spans (what may be control tokens), ids");
  command->footer(
      "Example:\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | tinyvllm template "
      "smollm2");
  command->callback([flags, &action] { action = [flags] { return render(*flags); }; });
}

}  // namespace tinyvllm
