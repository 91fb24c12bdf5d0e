// The way back from sequences to requests: tokens become text, stop strings end answers, clocks
// become timings. One thread owns it, not necessarily the engine's.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/engine_core.h"
#include "engine/prepare_request.h"
#include "engine/request_output.h"
#include "text/detokenizer.h"

namespace tinyvllm {

class Answers {
 public:
  Answers(const Tokenizer& tokenizer, Tracer& tracer) : tokenizer_(tokenizer), tracer_(tracer) {}

  void expect(const PreparedRequest& request);
  // Nothing when the answer is over already. With a finish reason, the sequence is not heard of
  // again; the engine must be told where `news` did not say so itself.
  std::optional<RequestOutput> deliver(SequenceOutput&& news, TraceContext& trace);

  // The request's answers that are not over, now over: their sequences, and what to say of them.
  struct Ended {
    SequenceId sequence = 0;
    RequestOutput output;
  };
  std::vector<Ended> abort(RequestId request);
  std::vector<Ended> abort_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    RequestId request = 0;
    uint32_t index = 0;
    int prompt_tokens = 0;
    int completion_tokens = 0;
    int cached_tokens = 0;
    int preemptions = 0;
    SpanId span = 0;  // of the request, in a trace
    Clock::time_point arrived = {};
    Clock::time_point first_token = {};
    Timings timings = {};
    std::vector<SampledToken> prompt_logprobs = {};  // until the first token
    Detokenizer text;
  };
  using Entry = std::map<SequenceId, Answer>::iterator;

  static RequestOutput summary(const Answer& answer);
  static void keep_time(Answer& answer, const SequenceOutput& news);
  Ended end(Entry entry);

  void trace_end(const Answer& answer, FinishReason reason);

  const Tokenizer& tokenizer_;
  Tracer& tracer_;
  std::map<SequenceId, Answer> answers_;
};

}  // namespace tinyvllm
