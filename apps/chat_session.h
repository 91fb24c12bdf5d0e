// A conversation with a model: its messages, how its answers are made, and what the last one cost.
// Every answer is asked for with the whole conversation; the engine's prefix cache finds the turns
// that it has seen.
#pragma once

#include <string>
#include <vector>

#include "apps/conversation.h"
#include "apps/reply.h"
#include "engine/llm_engine.h"

namespace tinyvllm {

class ChatSession {
 public:
  ChatSession(LLMEngine& engine, const ChatFormatter& format, const SamplingParams& sampling,
              std::string model, std::string system)
      : engine_(engine),
        format_(format),
        sampling_(sampling),
        model_(std::move(model)),
        system_(std::move(system)) {}

  // Streams the answer to stdout, until Ctrl-C. What cannot be answered is not kept.
  Status ask(const std::string& text);
  Status regenerate();  // the last answer, again
  void reset() { messages_.clear(); }

  Status save(const std::string& path) const;
  Status load(const std::string& path);

  Status set(const std::string& field, const std::string& value);
  void set_system(const std::string& text) { system_ = text; }

  const std::string& system() const { return system_; }
  const SamplingParams& sampling() const { return sampling_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }
  void print_stats() const;
  Status health() const { return engine_.health(); }

 private:
  Status answer();

  LLMEngine& engine_;
  const ChatFormatter& format_;
  SamplingParams sampling_;
  const std::string model_;
  std::string system_;
  std::vector<ChatMessage> messages_;  // of user and assistant in turn
  Reply last_;
};

}  // namespace tinyvllm
