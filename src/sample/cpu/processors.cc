#include "sample/cpu/processors.h"

#include "sample/arithmetic.h"

namespace tinyvllm::cpu_sampler {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

// Counts by token, started afresh by clearing a bit for each: 19 KB for 151,936 tokens, which the
// first-level cache holds. It lives in the candidates' memory, which is not yet in use.
class TokenCounts {
 public:
  explicit TokenCounts(Scratch& scratch)
      : vocabulary_(scratch.vocabulary),
        seen_(scratch.seen),
        counts_(scratch.members),
        ids_(scratch.ids) {
    std::fill_n(seen_, (vocabulary_ + 63) / 64, 0);
  }

  // Whether the id is in the vocabulary and was not here before.
  bool insert(int32_t id) {
    if (id < 0 || id >= vocabulary_) return false;
    uint64_t& word = seen_[id / 64];
    const uint64_t bit = uint64_t{1} << (id % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ids_[size_++] = id;
    counts_[id] = 0;
    return true;
  }
  bool contains(int32_t id) const {
    return id >= 0 && id < vocabulary_ && (seen_[id / 64] >> (id % 64) & 1) != 0;
  }
  int32_t& count(int32_t id) { return counts_[id]; }  // of one that is contained
  std::span<const int32_t> ids() const { return {ids_, static_cast<size_t>(size_)}; }

 private:
  const int64_t vocabulary_;
  uint64_t* seen_;
  int32_t* counts_;
  int32_t* ids_;
  int64_t size_ = 0;
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
  TokenCounts seen(scratch);
  for (const int32_t id : row.history) seen.insert(id);
  for (const int32_t id : seen.ids()) {
    float* logit = logits.edit(id);
    if (logit != nullptr) *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
  }
}

void penalise_frequency(const SampleRow& row, Row& logits, Scratch& scratch) {
  const auto frequency = static_cast<float>(row.params->frequency_penalty);
  const auto presence = static_cast<float>(row.params->presence_penalty);
  if (frequency == 0 && presence == 0) return;
  TokenCounts counts(scratch);
  for (const int32_t id : answer_of(row)) {
    counts.insert(id);
    if (counts.contains(id)) counts.count(id) += 1;
  }
  for (const int32_t id : counts.ids()) {
    if (float* logit = logits.edit(id)) {
      *logit -= frequency * static_cast<float>(counts.count(id));
      *logit -= presence;
    }
  }
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

  TokenCounts repeats(scratch);  // the longest that a token would extend
  for (size_t next = 1; next < tokens.size(); ++next) {
    const int repeat = repeat_before(tokens, next, most);
    if (repeat < params.dry_allowed_length) continue;
    repeats.insert(tokens[next]);
    if (!repeats.contains(tokens[next])) continue;
    int32_t& known = repeats.count(tokens[next]);
    known = std::max(known, repeat);
  }
  for (const int32_t id : repeats.ids()) {
    if (breaks(id)) continue;
    if (float* logit = logits.edit(id)) *logit -= dry_penalty(params, repeats.count(id));
  }
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
