#include "apps/conversation.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "engine/llm_engine.h"

namespace tinyvllm {

void add_chat_flags(CLI::App& command, ChatFlags& flags) {
  CLI::Option* system =
      command.add_option("--system", flags.system, "a system message before the conversation");
  CLI::Option* file = command.add_option("--chat-template", flags.chat_template,
                                         "a Jinja file to use instead of the model's template");
  command.add_flag("--raw", flags.raw, "continue the prompt as it is, without a chat format")
      ->excludes(system)
      ->excludes(file);
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error("'", printable(path, 4096), "' cannot be opened");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return error("'", printable(path, 4096), "' cannot be read");
  return text;
}

Result<ChatTemplate> open_chat_template(const TokenizerData& data, const std::string& file) {
  std::string source;
  if (!file.empty()) {
    TRY_ASSIGN(source, read_file(file));
    if (source.empty()) return error("'", printable(file, 4096), "' is empty");
  }
  return ChatTemplate::from_model(data, source);
}

ChatFormatter::ChatFormatter(const Tokenizer& tokenizer, ChatTemplate chat_template)
    : template_(std::make_unique<ChatTemplate>(std::move(chat_template))),
      encoder_(tokenizer, *template_) {}

Result<ChatFormatter> ChatFormatter::open(const LLMEngine& engine,
                                          const std::string& template_file) {
  TRY_ASSIGN(ChatTemplate chat_template,
             open_chat_template(engine.files().tokenizer(), template_file));
  return ChatFormatter(engine.tokenizer(), std::move(chat_template));
}

Result<std::vector<int32_t>> ChatFormatter::encode(const std::vector<ChatMessage>& messages) const {
  return encode(ChatInput::from_messages(messages, /*add_generation_prompt=*/true));
}

Result<std::vector<int32_t>> ChatFormatter::encode(const ChatInput& input) const {
  TRY_ASSIGN(const ChatPrompt prompt, template_->render(input));
  return encoder_.encode(prompt);
}

Result<std::vector<int32_t>> encode_question(const LLMEngine& engine, const ChatFlags& flags,
                                             const std::string& question) {
  if (flags.raw) return engine.tokenizer().encode(question, {});
  const Result<ChatFormatter> format = ChatFormatter::open(engine, flags.chat_template);
  if (!format.ok()) return error(format.message(), " (--raw asks without a format)");
  std::vector<ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", question});
  return format.value().encode(messages);
}

}  // namespace tinyvllm
