#include "apps/reply.h"

#include <algorithm>

namespace tinyvllm {
namespace {

void write_logprob(JsonWriter& json, const SampledToken& token) {
  json.begin_object().field("token_id", token.token);
  json.field("logprob", static_cast<double>(token.logprob)).key("top").begin_array();
  for (const TokenLogprob& other : token.top) {
    json.begin_object().field("token_id", other.token);
    json.field("logprob", static_cast<double>(other.logprob)).end_object();
  }
  json.end_array().end_object();
}

void write_logprobs(JsonWriter& json, const std::vector<SampledToken>& tokens) {
  json.key("logprobs").begin_array();
  for (const SampledToken& token : tokens) write_logprob(json, token);
  json.end_array();
}

// Nothing comes before the first token, so nothing says how likely it was.
void write_prompt_logprobs(JsonWriter& json, const std::vector<SampledToken>& tokens) {
  json.key("prompt_logprobs").begin_array().null();
  for (const SampledToken& token : tokens) write_logprob(json, token);
  json.end_array();
}

void write_answer(JsonWriter& json, const Answer& answer, bool with_logprobs) {
  json.field("text", answer.text).key("token_ids").begin_array();
  for (const SampledToken& token : answer.tokens) json.value(token.token);
  json.end_array().field("finish_reason", to_string(answer.finish));
  if (with_logprobs) write_logprobs(json, answer.tokens);
}

}  // namespace

void Reply::expect(const SamplingParams& sampling) {
  answers.resize(static_cast<size_t>(sampling.n));
  with_logprobs = sampling.logprobs.has_value();
  with_prompt_logprobs = sampling.prompt_logprobs.has_value();
}

double Reply::prefill_tok_s() const {
  const double computed = static_cast<double>(prompt_ids.size()) - cached_tokens;
  return prefill_s > 0 ? computed / prefill_s : 0;
}

size_t Reply::completion_tokens() const {
  size_t tokens = 0;
  for (const Answer& answer : answers) tokens += answer.tokens.size();
  return tokens;
}

bool Reply::finished() const {
  return std::all_of(answers.begin(), answers.end(),
                     [](const Answer& answer) { return answer.finish != FinishReason::kNone; });
}

void Reply::add(const RequestOutput& news) {
  Answer& answer = answers[news.answer];
  answer.text += news.text;
  answer.tokens.insert(answer.tokens.end(), news.tokens.begin(), news.tokens.end());
  answer.finish = news.finish;
  if (news.answer != 0) return;
  prompt_logprobs.insert(prompt_logprobs.end(), news.prompt_logprobs.begin(),
                         news.prompt_logprobs.end());
  prefill_s = news.timings.prefill_s;
  cached_tokens = news.cached_tokens;
  ttft_s = news.timings.ttft_s;
}

void write_reply(JsonWriter& json, const Reply& reply) {
  write_answer(json, reply.answers.front(), reply.with_logprobs);
  if (reply.answers.size() > 1) {
    json.key("answers").begin_array();
    for (const Answer& answer : reply.answers) {
      json.begin_object();
      write_answer(json, answer, reply.with_logprobs);
      json.end_object();
    }
    json.end_array();
  }
  json.field("prompt_token_ids", reply.prompt_ids);
  if (reply.with_prompt_logprobs) write_prompt_logprobs(json, reply.prompt_logprobs);
  json.key("usage").begin_object().field("prompt_tokens", reply.prompt_ids.size());
  json.field("completion_tokens", reply.completion_tokens());
  json.field("cached_tokens", reply.cached_tokens).end_object();
  json.key("timings").begin_object();
  json.field("load_s", reply.load_s).field("ttft_s", reply.ttft_s);
  json.field("prefill_tok_s", reply.prefill_tok_s()).field("decode_tok_s", reply.decode_tok_s);
  json.key("limit_percent");
  reply.limit_percent ? json.value(*reply.limit_percent) : json.null();
  json.end_object();
}

}  // namespace tinyvllm
