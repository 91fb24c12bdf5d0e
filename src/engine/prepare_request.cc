#include "engine/prepare_request.h"

#include "engine/prepare_sampling.h"

namespace tinyvllm {
namespace {

Status check_tokens(const std::vector<int32_t>& prompt, int64_t vocabulary) {
  for (const int32_t token : prompt) {
    if (token < 0 || token >= vocabulary) {
      return error("prompt: token ", token, " is outside the vocabulary of ", vocabulary);
    }
  }
  return Status();
}

Status truncate(std::vector<int32_t>& prompt, int keep, int longest) {
  if (keep < -1) {
    return error("truncate_prompt_tokens: expected -1, 0 or more, found ", keep);
  }
  const auto kept = static_cast<size_t>(keep == -1 ? longest : keep);
  if (keep != 0 && prompt.size() > kept) {
    prompt.erase(prompt.begin(), prompt.end() - static_cast<ptrdiff_t>(kept));
  }
  return Status();
}

}  // namespace

Result<PreparedRequest> prepare_request(std::vector<int32_t> prompt, SamplingParams sampling,
                                        const RequestOptions& options, const Tokenizer& tokenizer,
                                        const RequestLimits& limits) {
  TRY(check_tokens(prompt, limits.vocab_size));
  TRY(truncate(prompt, options.truncate_prompt_tokens, limits.longest_prompt));
  TRY(prepare_sampling(sampling, tokenizer, limits.vocab_size));
  PreparedRequest prepared;
  for (uint32_t answer = 0; answer < static_cast<uint32_t>(sampling.n); ++answer) {
    Request& request = prepared.sequences.emplace_back();
    request.prompt = prompt;
    request.sampling = sampling;
    request.priority = options.priority;
    request.cache_salt = options.cache_salt;
    request.answer = answer;
    // To be scored, every position of a prompt must be computed; once is enough for all answers.
    if (answer > 0) request.sampling.prompt_logprobs.reset();
    request.reuse_prefix = !request.sampling.prompt_logprobs;
  }
  return prepared;
}

}  // namespace tinyvllm
