// Conversations on their way to a model: which format a command was asked to use, and the token ids
// that a conversation becomes in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/chat_template.h"

namespace CLI {
class App;
}

namespace tinyvllm {

class LLMEngine;

struct ChatFlags {
  std::string system;         // a system message; empty: what the template does without one
  std::string chat_template;  // a file with the template; empty: the model's own
  bool raw = false;           // no format at all
};

// --system, --chat-template and --raw.
void add_chat_flags(CLI::App& command, ChatFlags& flags);

Result<std::string> read_file(const std::string& path);

// The model's own template, or the one in `file` if that is not empty.
Result<ChatTemplate> open_chat_template(const TokenizerData& data, const std::string& file);

// A model's conversation format, ready to encode with. Must not outlive the engine.
class ChatFormatter {
 public:
  static Result<ChatFormatter> open(const LLMEngine& engine, const std::string& template_file);

  // The ids up to where the assistant's answer begins.
  Result<std::vector<int32_t>> encode(const std::vector<ChatMessage>& messages) const;
  Result<std::vector<int32_t>> encode(const ChatInput& input) const;

 private:
  ChatFormatter(const Tokenizer& tokenizer, ChatTemplate chat_template);

  std::unique_ptr<ChatTemplate> template_;  // where the encoder looks for it
  ChatEncoder encoder_;
};

// One question as the flags want it asked.
Result<std::vector<int32_t>> encode_question(const LLMEngine& engine, const ChatFlags& flags,
                                             const std::string& question);

}  // namespace tinyvllm
