#include "sample/cpu/processors.h"

#include <bit>

#include "sample/arithmetic.h"

namespace tinyvllm::cpu_sampler {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

// A set of tokens: a bit for each of the vocabulary, 19 KB for 151,936, which the first-level cache
// holds. Adding asks no questions (a branch on "seen before?" is mispredicted all the time in
// text), and visiting ascends, as memory likes it.
class TokenSet {
 public:
  explicit TokenSet(Scratch& scratch)
      : vocabulary_(scratch.vocabulary), words_(scratch.seen), counts_(scratch.members.ids) {
    std::fill_n(words_, (vocabulary_ + 63) / 64, 0);
  }

  bool allows(int32_t id) const { return id >= 0 && id < vocabulary_; }
  bool contains(int32_t id) const { return (words_[id / 64] >> (id % 64) & 1) != 0; }
  void add(int32_t id) { words_[id / 64] |= uint64_t{1} << (id % 64); }
  void add(std::span<const int32_t> ids) {
    for (const int32_t id : ids) {
      if (allows(id)) add(id);
    }
  }

  // A number for each, whatever it was at first.
  int32_t& count(int32_t id) { return counts_[id]; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (int64_t word = 0; word < (vocabulary_ + 63) / 64; ++word) {
      for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(static_cast<int32_t>(word * 64 + std::countr_zero(bits)));
      }
    }
  }

 private:
  const int64_t vocabulary_;
  uint64_t* const words_;
  int32_t* const counts_;
};

std::span<const int32_t> answer_of(const SampleRow& row) {
  return row.history.subspan(std::min<size_t>(row.prompt_tokens, row.history.size()));
}

bool holds_back_end(const SampleRow& row) {
  return static_cast<int64_t>(row.position) - row.prompt_tokens < row.params->min_tokens;
}

void ban(std::span<const int32_t> ids, Row& logits) {
  for (const int32_t id : ids) {
    if (float* logit = logits.edit(id)) *logit = kOut;
  }
}

void ban_bad_words(const SampleRow& row, Row& logits) {
  const std::span<const int32_t> answer = answer_of(row);
  for (const std::vector<int32_t>& word : row.params->bad_words_token_ids) {
    if (word.empty() || word.size() > answer.size() + 1) continue;
    if (std::equal(word.begin(), word.end() - 1, answer.end() - (word.size() - 1))) {
      ban({&word.back(), 1}, logits);
    }
  }
}

void penalise_repetition(const SampleRow& row, Row& logits, Scratch& scratch) {
  const auto penalty = static_cast<float>(row.params->repetition_penalty);
  if (penalty == 1) return;
  TokenSet seen(scratch);
  seen.add(row.history);
  seen.for_each([&](int32_t id) {
    float* logit = logits.edit(id);
    if (logit != nullptr) *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
  });
}

void penalise_frequency(const SampleRow& row, Row& logits, Scratch& scratch) {
  const auto frequency = static_cast<float>(row.params->frequency_penalty);
  const auto presence = static_cast<float>(row.params->presence_penalty);
  if (frequency == 0 && presence == 0) return;
  TokenSet seen(scratch);
  seen.add(answer_of(row));
  seen.for_each([&](int32_t id) { seen.count(id) = 0; });
  for (const int32_t id : answer_of(row)) {
    if (seen.allows(id)) seen.count(id) += 1;
  }
  seen.for_each([&](int32_t id) {
    if (float* logit = logits.edit(id)) {
      *logit -= frequency * static_cast<float>(seen.count(id));
      *logit -= presence;
    }
  });
}

// How many tokens before `end` equal those at the end of the tokens, one for one, up to `most`.
int repeat_before(std::span<const int32_t> tokens, size_t end, int most) {
  const int32_t* a = tokens.data() + end - 1;
  const int32_t* b = tokens.data() + tokens.size() - 1;
  const int limit = static_cast<int>(std::min<size_t>(static_cast<size_t>(most), end));
  int length = 0;
  while (length < limit && a[-length] == b[-length]) length += 1;
  return length;
}

void penalise_longer_repeats(const SampleRow& row, Row& logits, Scratch& scratch) {
  const SamplingParams& params = *row.params;
  if (!uses_dry(params)) return;
  const size_t reach = params.dry_penalty_last_n < 0
                           ? row.history.size()
                           : static_cast<size_t>(params.dry_penalty_last_n);
  const std::span<const int32_t> tokens = row.history.last(std::min(reach, row.history.size()));
  const auto breaks = [&](int32_t id) {
    return std::binary_search(params.dry_sequence_breaker_ids.begin(),
                              params.dry_sequence_breaker_ids.end(), id);
  };
  const auto longest = std::min<ptrdiff_t>(longest_dry_repeat(params), std::ssize(tokens));
  const auto most = static_cast<int>(
      std::find_if(tokens.rbegin(), tokens.rbegin() + longest, breaks) - tokens.rbegin());
  if (most < params.dry_allowed_length) return;

  TokenSet extending(scratch);  // with the longest repeat that the token would extend
  for (size_t next = 1; next < tokens.size(); ++next) {
    const int repeat = repeat_before(tokens, next, most);
    const int32_t id = tokens[next];
    if (repeat < params.dry_allowed_length || !extending.allows(id)) continue;
    extending.count(id) = extending.contains(id) ? std::max(extending.count(id), repeat) : repeat;
    extending.add(id);
  }
  extending.for_each([&](int32_t id) {
    if (breaks(id)) return;
    if (float* logit = logits.edit(id)) *logit -= dry_penalty(params, extending.count(id));
  });
}

}  // namespace

bool changes_logits(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  return needs_history(params) || params.allowed_token_ids || !params.logit_bias.empty() ||
         holds_back_end(row);
}

void process_logits(const SampleRow& row, Row& logits, Scratch& scratch) {
  const SamplingParams& params = *row.params;
  if (params.allowed_token_ids) logits.keep_only(*params.allowed_token_ids);
  ban_bad_words(row, logits);
  if (holds_back_end(row)) {
    ban(row.end_ids, logits);
    ban(params.stop_token_ids, logits);
  }
  for (const LogitBias& entry : params.logit_bias) {
    if (float* logit = logits.edit(entry.token)) *logit += entry.bias;
  }
  penalise_repetition(row, logits, scratch);
  penalise_frequency(row, logits, scratch);
  penalise_longer_repeats(row, logits, scratch);
  logits.rescan();
}

}  // namespace tinyvllm::cpu_sampler
