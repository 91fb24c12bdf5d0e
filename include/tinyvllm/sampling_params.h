// How a request's tokens are chosen and when it ends. Names and defaults are vLLM's; dry and xtc
// are llama.cpp's.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tinyvllm {

// max_tokens of a request that may run to the end of the context.
constexpr int kNoTokenLimit = std::numeric_limits<int>::max();

struct LogitBias {
  int32_t token = 0;
  float bias = 0;
};

struct SamplingParams {
  int n = 1;  // answers to one prompt

  double temperature = 1.0;  // 0: greedy, exactly
  int top_k = 0;             // 0 or -1: all
  double top_p = 1.0;
  double min_p = 0.0;
  double typical_p = 1.0;
  std::optional<uint64_t> seed;  // absent: the engine draws one and reports it

  // Presence and frequency count the answer's tokens, repetition the prompt's as well.
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  double repetition_penalty = 1.0;

  // A token that would extend a repeat of `length` tokens loses multiplier · base^(length -
  // allowed_length), unless it is a breaker. Repeats do not reach back over a breaker.
  double dry_multiplier = 0.0;  // 0: off
  double dry_base = 1.75;       // below 1: off
  int dry_allowed_length = 2;
  int dry_penalty_last_n = 64;  // tokens looked at; 0: off, -1: all
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  double xtc_probability = 0.0;  // 0: off
  double xtc_threshold = 0.1;    // above 0.5: off

  std::vector<LogitBias> logit_bias;
  std::optional<std::vector<int32_t>> allowed_token_ids;
  std::vector<std::string> bad_words;

  std::optional<int> logprobs;  // 0: the chosen token's only
  std::optional<int> prompt_logprobs;

  int max_tokens = 16;
  int min_tokens = 0;  // before these, no token that ends the answer is chosen
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;

  // Words as the sampler takes them; whoever has the tokenizer makes them from the strings above.
  std::vector<std::vector<int32_t>> bad_words_token_ids;
  std::vector<int32_t> dry_sequence_breaker_ids;  // every token with a breaker in it, ascending
};

}  // namespace tinyvllm
