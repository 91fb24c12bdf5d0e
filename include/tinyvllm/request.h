// What is asked: a prompt in one of its forms, and how to treat it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tinyvllm {

using RequestId = uint64_t;

struct ChatMessage {
  std::string role;
  std::string content;
};

// Text, continued as it is; token ids; or a conversation, put into the model's own format.
using Prompt = std::variant<std::string, std::vector<int32_t>, std::vector<ChatMessage>>;

struct RequestOptions {
  int priority = 0;        // lower runs first
  std::string cache_salt;  // prompts with different salts share no cache
  // Keep only so many of the prompt's last tokens; 0: all, -1: as many as fit.
  int truncate_prompt_tokens = 0;
};

}  // namespace tinyvllm
