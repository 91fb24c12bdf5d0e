// What comes back from a request: news of one of its answers, as they come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tinyvllm/request.h"

namespace tinyvllm {

struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0;
};

struct SampledToken {
  int32_t token = -1;
  // With params.logprobs: under the model's own distribution, before temperature, penalties and
  // filters (vLLM's raw_logprobs).
  float logprob = 0;
  std::vector<TokenLogprob> top;  // the params.logprobs likeliest tokens, likeliest first
};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };

// "stop", "length", …; "" for kNone
constexpr const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// Seconds, so far.
struct Timings {
  double queue_s = 0;    // from the request to the first step that computed for it
  double prefill_s = 0;  // from there to its first token
  double decode_s = 0;   // and from that to its newest one
  double ttft_s = 0;     // from the request to its first token
  double total_s = 0;    // and to its newest one

  // Between two tokens, on average.
  double per_token_s(int completion_tokens) const {
    return completion_tokens > 1 ? decode_s / (completion_tokens - 1) : 0;
  }
};

struct RequestOutput {
  RequestId request = 0;
  uint32_t answer = 0;  // which, of several
  std::string text;     // new since the last output, whole characters
  std::vector<SampledToken> tokens;
  // With params.prompt_logprobs, once, with the first token of the first answer: the prompt's
  // tokens from the second one on, in order, each as the model saw it coming.
  std::vector<SampledToken> prompt_logprobs;
  FinishReason finish = FinishReason::kNone;  // set once, in an answer's last output
  std::string stop_string;                    // the one that ended it, if one did
  int prompt_tokens = 0;
  int completion_tokens = 0;  // so far
  int cached_tokens = 0;      // of the prompt
  Timings timings;
  std::string error;  // with kError
};

}  // namespace tinyvllm
