// What comes back from a request: news of one of its answers, as they come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/step_plan.h"

namespace tinyvllm {

using RequestId = uint64_t;

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
  // With params.prompt_logprobs, once, before or with the first token of the first answer: the
  // prompt's tokens but the first one, in order.
  std::vector<ScoredToken> prompt_logprobs;
  FinishReason finish = FinishReason::kNone;  // set once, in an answer's last output
  std::string stop_string;                    // the one that ended it, if one did
  int prompt_tokens = 0;
  int completion_tokens = 0;  // so far
  int cached_tokens = 0;      // of the prompt
  Timings timings;
  std::string error;  // with kError
};

// Adds an answer's newer output to what it brought before.
void append(RequestOutput& answer, RequestOutput&& news);

}  // namespace tinyvllm
