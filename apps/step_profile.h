// One request, step by step, with the clock read around everything: what the ledger says of each
// step's ops, and what lies before, between and after them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/llm_engine.h"
#include "telemetry/ledger.h"

namespace tinyvllm {

struct ProfiledStep {
  Phase phase = Phase::kPrefill;
  double total_ms = 0;
  double schedule_ms = 0;  // before the first op and after the last: plan, batch, commit
  double forward_ms = 0;   // from the first op to the end of the last one that is not sampling
  double sample_ms = 0;
  std::vector<OpCall> ops;  // of the forward pass, in order; none when nobody watches
};

struct ProfiledRequest {
  double total_ms = 0;  // from the text to the last token's text
  double encode_ms = 0;
  std::vector<double> decode_text_ms;  // of each token
  std::vector<ProfiledStep> steps;
  int tokens = 0;
  std::string text;
};

// Without `watch` there is no ledger: a step is its total and nothing else.
Result<ProfiledRequest> profile_request(LLMEngine& engine, const Prompt& prompt, int tokens,
                                        bool watch);

}  // namespace tinyvllm
