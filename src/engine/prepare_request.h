// Makes a request ready on its caller's thread, whichever that is: a prompt becomes token ids,
// parameters are checked against the model, and what can never fit is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "telemetry/trace_events.h"
#include "text/tokenizer.h"
#include "tinyvllm/request.h"

namespace tinyvllm {

struct PreparedRequest {
  RequestId id = 0;
  // One per answer, with ids from `id` on: the others share the first one's prompt.
  std::vector<Request> sequences;
  std::chrono::steady_clock::time_point arrived;
  SpanId span = 0;  // in a trace; 0: nobody listened when it came
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
