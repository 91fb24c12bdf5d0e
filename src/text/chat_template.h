// A model's conversation format: compiled once, then rendered for each request into the text the
// model was trained on, with every character marked as the template's own or the conversation's.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "text/span.h"
#include "text/tokenizer.h"
#include "tinyvllm/request.h"

namespace tinyvllm {

// A rendered conversation. Only inside of `template_spans`, ascending and apart, may text become
// control tokens.
struct ChatPrompt {
  std::string text;
  std::vector<Span> template_spans;
};

// What a template is rendered with: messages, tools, documents, add_generation_prompt and any other
// variables. Immutable; may be rendered many times.
class ChatInput {
 public:
  ~ChatInput();
  ChatInput(ChatInput&&) noexcept;
  ChatInput& operator=(ChatInput&&) noexcept;

  // {"messages": […], "tools": […], "add_generation_prompt": true, …}; only messages must be there.
  static Result<ChatInput> from_json(std::string_view json);

  static ChatInput from_messages(const std::vector<ChatMessage>& messages,
                                 bool add_generation_prompt);

 private:
  friend class ChatTemplate;
  struct Variables;
  explicit ChatInput(std::unique_ptr<Variables> variables);

  std::unique_ptr<Variables> variables_;
};

// Immutable, and safe to render from many threads at once.
class ChatTemplate {
 public:
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Tokens that templates refer to by name (bos_token, eos_token, …): text that is trusted.
  struct NamedToken {
    std::string name;
    std::string text;
    std::vector<std::string> list = {};  // instead of the text: additional_special_tokens
  };

  // Errors name the line and column of the template.
  static Result<ChatTemplate> compile(std::string_view source, std::vector<NamedToken> tokens);

  // The template that a model's files carry, or `instead` if that is not empty, with the tokens
  // that the files name. Models may carry one for conversations with tools besides the one for
  // those without; render() picks.
  static Result<ChatTemplate> from_model(const TokenizerData& data, std::string_view instead = {});

  Result<ChatPrompt> render(const ChatInput& input) const;

  // Whether the template spells out this text: then even an ordinary added token of that spelling,
  // <tool_call> say, steers the model, and messages must not be able to form it.
  bool mentions(std::string_view text) const;

 private:
  struct Programs;
  explicit ChatTemplate(std::unique_ptr<Programs> programs);

  std::unique_ptr<Programs> programs_;
};

// Turns rendered conversations into token ids: those that Hugging Face would give for the whole
// text, except that messages cannot form control tokens. Made once for a model.
class ChatEncoder {
 public:
  // Both must outlive it.
  ChatEncoder(const Tokenizer& tokenizer, const ChatTemplate& chat_template);

  std::vector<int32_t> encode(const ChatPrompt& prompt) const;

 private:
  const Tokenizer& tokenizer_;
  std::set<std::string, std::less<>> control_words_;
};

}  // namespace tinyvllm
