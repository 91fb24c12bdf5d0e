// Makes a request ready on its caller's thread, whichever that is: a prompt becomes token ids,
// parameters are checked against the model, and what can never fit is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "engine/request_output.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tinyvllm {

// Text, continued as it is; token ids; or a conversation, put into the model's own format.
using Prompt = std::variant<std::string, std::vector<int32_t>, std::vector<ChatMessage>>;

struct RequestOptions {
  int priority = 0;        // lower runs first
  std::string cache_salt;  // prompts with different salts share no cache
  // Keep only so many of the prompt's last tokens; 0: all, -1: as many as fit.
  int truncate_prompt_tokens = 0;
};

struct PreparedRequest {
  RequestId id = 0;
  // One per answer, with ids from `id` on: the others share the first one's prompt.
  std::vector<Request> sequences;
  std::chrono::steady_clock::time_point arrived;
};

struct RequestLimits {
  int64_t vocab_size = 0;
  int longest_prompt = 0;  // tokens, one more being needed to answer
};

// All but the ids and the time.
Result<PreparedRequest> prepare_request(std::vector<int32_t> prompt, SamplingParams sampling,
                                        const RequestOptions& options, const Tokenizer& tokenizer,
                                        const RequestLimits& limits);

}  // namespace tinyvllm
