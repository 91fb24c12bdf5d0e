// Requests for benches: prompts that are random but the same in every run, an engine driven until
// all of them are answered, and what each of them saw.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/llm_engine.h"

namespace tinyvllm {

std::vector<int32_t> random_tokens(int count, int64_t vocab_size, uint64_t seed);

struct Served {  // one request
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int tokens = 0;
  Timings timings;
  std::vector<double> gaps_ms;  // between its tokens
  std::string text;
};

struct Load {  // all that were served together
  std::vector<Served> requests;
  double seconds = 0;   // from the first request to the last token
  int used_blocks = 0;  // of the KV cache, at most
  double tokens_per_s() const;
  std::vector<double> each(double (*of)(const Served&)) const;
};

double ttft_ms(const Served& request);
double tpot_ms(const Served& request);
double e2e_ms(const Served& request);

// All prompts at once, `tokens` tokens each, the likeliest, never ending early. Ctrl-C is an error.
Result<Load> serve(LLMEngine& engine, const std::vector<Prompt>& prompts, int tokens);

}  // namespace tinyvllm
