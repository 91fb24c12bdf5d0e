#include "engine/prepare_sampling.h"

#include "sample/random.h"

namespace tinyvllm {
namespace {

// A word is banned as it stands at the beginning of a text and as it follows a space.
void resolve_bad_words(SamplingParams& params, const Tokenizer& tokenizer) {
  for (const std::string& word : params.bad_words) {
    for (const char* before : {"", " "}) {
      std::vector<int32_t> ids = tokenizer.encode(before + word, {false, false});
      if (!ids.empty()) params.bad_words_token_ids.push_back(std::move(ids));
    }
  }
}

// Every token whose text has a breaker in it.
void resolve_dry_breakers(SamplingParams& params, const Tokenizer& tokenizer) {
  if (params.dry_multiplier == 0) return;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string piece = tokenizer.piece(id, false);
    for (const std::string& breaker : params.dry_sequence_breakers) {
      if (piece.find(breaker) == std::string::npos) continue;
      params.dry_sequence_breaker_ids.push_back(id);
      break;
    }
  }
}

}  // namespace

Status prepare_sampling(SamplingParams& params, const Tokenizer& tokenizer, int64_t vocab_size) {
  TRY(validate(params, {.vocab_size = vocab_size}));
  resolve_bad_words(params, tokenizer);
  resolve_dry_breakers(params, tokenizer);
  if (!params.seed) params.seed = random_seed();
  return Status();
}

}  // namespace tinyvllm
