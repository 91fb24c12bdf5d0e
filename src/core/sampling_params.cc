#include "core/sampling_params.h"

#include <algorithm>
#include <charconv>

namespace tinyvllm {
namespace {

constexpr size_t kMaxBadWords = 1000;       // each costs a look at every token
constexpr int kMaxDryAllowedLength = 1024;  // bounds the work per token of history

// As few digits as read back equal, so that 1.0000001 is not refused as "1".
std::string digits(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// Written so that NaN is outside of every range.
Status in_range(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return Status();
  return error(field, ": expected ", digits(low), " to ", digits(high), ", found ", digits(value));
}

Status in_open_range(const char* field, double value, double high) {
  if (value > 0 && value <= high) return Status();
  return error(field, ": expected more than 0, at most ", digits(high), ", found ", digits(value));
}

Status at_least(const char* field, int64_t value, int64_t low, const char* meaning = "") {
  if (value >= low) return Status();
  return error(field, ": expected at least ", low, meaning, ", found ", value);
}

Status logprobs_in_range(const char* field, const std::optional<int>& count, int limit) {
  if (!count || (*count >= 0 && *count <= limit)) return Status();
  return error(field, ": expected 0 to ", limit, ", found ", *count);
}

Status no_empty_string(const char* field, const std::vector<std::string>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].empty()) {
      return error(field, "[", i, "]: expected at least one character, found none");
    }
  }
  return Status();
}

Status in_vocabulary(const char* field, int32_t token, int64_t vocab_size) {
  if (token >= 0 && (vocab_size == 0 || token < vocab_size)) return Status();
  if (vocab_size == 0) return error(field, ": expected token ids of at least 0, found ", token);
  return error(field, ": expected token ids from 0 to ", vocab_size - 1, ", found ", token);
}

Status in_vocabulary(const char* field, const std::vector<int32_t>& tokens, int64_t vocab_size) {
  for (const int32_t token : tokens) TRY(in_vocabulary(field, token, vocab_size));
  return Status();
}

Status validate_numbers(const SamplingParams& p) {
  TRY(in_range("temperature", p.temperature, 0, 100));
  TRY(at_least("top_k", p.top_k, -1, " (0 or -1 for all tokens)"));
  TRY(in_open_range("top_p", p.top_p, 1));
  TRY(in_range("min_p", p.min_p, 0, 1));
  TRY(in_open_range("typical_p", p.typical_p, 1));
  TRY(in_range("presence_penalty", p.presence_penalty, -2, 2));
  TRY(in_range("frequency_penalty", p.frequency_penalty, -2, 2));
  TRY(in_range("repetition_penalty", p.repetition_penalty, 0.01, 100));
  TRY(in_range("dry_multiplier", p.dry_multiplier, 0, 100));
  TRY(in_range("dry_base", p.dry_base, 0, 100));
  TRY(in_range("dry_allowed_length", p.dry_allowed_length, 0, kMaxDryAllowedLength));
  TRY(at_least("dry_penalty_last_n", p.dry_penalty_last_n, -1, " (-1 for all tokens)"));
  TRY(in_range("xtc_probability", p.xtc_probability, 0, 1));
  return in_range("xtc_threshold", p.xtc_threshold, 0, 1);
}

Status validate_lengths(const SamplingParams& p, const SamplingLimits& limits) {
  TRY(in_range("n", p.n, 1, limits.max_n));
  TRY(logprobs_in_range("logprobs", p.logprobs, limits.max_logprobs));
  TRY(logprobs_in_range("prompt_logprobs", p.prompt_logprobs, limits.max_logprobs));
  TRY(at_least("max_tokens", p.max_tokens, 1));
  if (p.min_tokens < 0 || p.min_tokens > p.max_tokens) {
    return error("min_tokens: expected 0 to max_tokens = ", p.max_tokens, ", found ", p.min_tokens);
  }
  return Status();
}

Status validate_words(const SamplingParams& p, int64_t vocab_size) {
  TRY(no_empty_string("stop", p.stop));
  TRY(no_empty_string("bad_words", p.bad_words));
  TRY(no_empty_string("dry_sequence_breakers", p.dry_sequence_breakers));
  TRY(in_vocabulary("stop_token_ids", p.stop_token_ids, vocab_size));
  for (const LogitBias& entry : p.logit_bias) {
    TRY(in_vocabulary("logit_bias", entry.token, vocab_size));
    TRY(in_range("logit_bias", entry.bias, -100, 100));
  }
  if (p.allowed_token_ids) {
    if (p.allowed_token_ids->empty()) {
      return error("allowed_token_ids: expected at least one token id, found none");
    }
    TRY(in_vocabulary("allowed_token_ids", *p.allowed_token_ids, vocab_size));
  }
  if (p.bad_words.size() > kMaxBadWords) {
    return error("bad_words: expected at most ", kMaxBadWords, ", found ", p.bad_words.size());
  }
  for (const std::vector<int32_t>& word : p.bad_words_token_ids) {
    if (word.empty()) return error("bad_words: expected words of at least one token, found none");
    TRY(in_vocabulary("bad_words", word, vocab_size));
  }
  return Status();
}

}  // namespace

Status validate(const SamplingParams& params, const SamplingLimits& limits) {
  TRY(validate_numbers(params));
  TRY(validate_lengths(params, limits));
  return validate_words(params, limits.vocab_size);
}

Result<SamplingParams> default_params(const SamplingDefaults& model) {
  SamplingParams params;
  params.temperature = model.temperature.value_or(params.temperature);
  params.top_p = model.top_p.value_or(params.top_p);
  params.min_p = model.min_p.value_or(params.min_p);
  params.repetition_penalty = model.repetition_penalty.value_or(params.repetition_penalty);
  constexpr int64_t kAll = std::numeric_limits<int>::max();  // more than any vocabulary
  params.top_k = static_cast<int>(std::clamp<int64_t>(model.top_k.value_or(0), -2, kAll));
  const Status status = validate(params);
  if (!status.ok()) return error("generation_config: ", status.message());
  return params;
}

}  // namespace tinyvllm
