// What came of one prompt: its answers, and the JSON that scripts read. `run` and its batches share
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "engine/llm_engine.h"

namespace tinyvllm {

struct Answer {
  std::string text;
  std::vector<SampledToken> tokens;
  FinishReason finish = FinishReason::kNone;
};

struct Reply {
  void expect(const SamplingParams& sampling);  // so many answers, with or without logprobs

  std::vector<int32_t> prompt_ids;
  std::vector<Answer> answers;  // as many as were asked for
  bool with_logprobs = false;
  bool with_prompt_logprobs = false;
  std::vector<SampledToken> prompt_logprobs;  // of all but the first token
  int cached_tokens = 0;
  double load_s = 0;
  double ttft_s = 0;
  double prefill_s = 0;
  double decode_tok_s = 0;  // of all answers together
  double gigabytes_per_s = 0;
  std::optional<double> limit_percent;

  size_t completion_tokens() const;
  double prefill_tok_s() const;  // of what was not cached
  bool finished() const;

  void add(const RequestOutput& news);
};

// The keys of `run --json`, into an object that is open. With several answers the first one's are
// at the top, and all are under "answers".
void write_reply(JsonWriter& json, const Reply& reply);

}  // namespace tinyvllm
