#include "sample/reference/processors.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sample/arithmetic.h"

namespace tinyvllm::reference {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

// Ids of a request are checked when it arrives; one that is outside all the same changes nothing.
bool in_row(int32_t id, std::span<const float> logits) {
  return id >= 0 && static_cast<size_t>(id) < logits.size();
}

std::span<const int32_t> answer_of(const SampleRow& row) {
  return row.history.subspan(std::min<size_t>(row.prompt_tokens, row.history.size()));
}

void keep_allowed(const SamplingParams& params, std::span<float> logits) {
  if (!params.allowed_token_ids) return;
  std::vector<float> allowed(logits.size(), kOut);
  for (const int32_t id : *params.allowed_token_ids) {
    if (in_row(id, logits)) allowed[static_cast<size_t>(id)] = logits[static_cast<size_t>(id)];
  }
  std::copy(allowed.begin(), allowed.end(), logits.begin());
}

void ban(std::span<const int32_t> ids, std::span<float> logits) {
  for (const int32_t id : ids) {
    if (in_row(id, logits)) logits[static_cast<size_t>(id)] = kOut;
  }
}

void ban_bad_words(const SampleRow& row, std::span<float> logits) {
  const std::span<const int32_t> answer = answer_of(row);
  for (const std::vector<int32_t>& word : row.params->bad_words_token_ids) {
    if (word.empty() || word.size() > answer.size() + 1) continue;
    const std::span<const int32_t> before = answer.last(word.size() - 1);
    if (std::equal(before.begin(), before.end(), word.begin())) ban({&word.back(), 1}, logits);
  }
}

void hold_back_end(const SampleRow& row, std::span<float> logits) {
  if (static_cast<int64_t>(row.position) - row.prompt_tokens >= row.params->min_tokens) return;
  ban(row.end_ids, logits);
  ban(row.params->stop_token_ids, logits);
}

void penalise_repetition(const SampleRow& row, std::span<float> logits) {
  std::map<int32_t, int> in_history, in_answer;
  for (const int32_t id : row.history) in_history[id] += 1;
  for (const int32_t id : answer_of(row)) in_answer[id] += 1;

  const auto repetition = static_cast<float>(row.params->repetition_penalty);
  for (const auto& [id, count] : in_history) {
    if (!in_row(id, logits)) continue;
    float& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / repetition : logit * repetition;
  }
  for (const auto& [id, count] : in_answer) {
    if (!in_row(id, logits)) continue;
    float& logit = logits[static_cast<size_t>(id)];
    logit -= static_cast<float>(row.params->frequency_penalty) * static_cast<float>(count);
    logit -= static_cast<float>(row.params->presence_penalty);
  }
}

// How many tokens before `end` equal those at the end of the tokens, one for one, up to `most`.
int repeat_before(std::span<const int32_t> tokens, size_t end, int most) {
  int length = 0;
  while (length < most && static_cast<size_t>(length) < end &&
         tokens[end - 1 - static_cast<size_t>(length)] ==
             tokens[tokens.size() - 1 - static_cast<size_t>(length)]) {
    length += 1;
  }
  return length;
}

void penalise_longer_repeats(const SampleRow& row, std::span<float> logits) {
  const SamplingParams& params = *row.params;
  if (!uses_dry(params)) return;
  const size_t reach = params.dry_penalty_last_n < 0
                           ? row.history.size()
                           : static_cast<size_t>(params.dry_penalty_last_n);
  const std::span<const int32_t> tokens = row.history.last(std::min(reach, row.history.size()));
  const auto breaks = [&](int32_t id) {
    return std::find(params.dry_sequence_breaker_ids.begin(), params.dry_sequence_breaker_ids.end(),
                     id) != params.dry_sequence_breaker_ids.end();
  };

  const auto last_breaker = std::find_if(tokens.rbegin(), tokens.rend(), breaks);
  const auto most = static_cast<int>(
      std::min<int64_t>(last_breaker - tokens.rbegin(), longest_dry_repeat(params)));

  std::map<int32_t, int> longest;  // repeat that a token would extend
  for (size_t next = 1; next < tokens.size(); ++next) {
    const int repeat = repeat_before(tokens, next, most);
    if (repeat < params.dry_allowed_length || breaks(tokens[next])) continue;
    int& known = longest[tokens[next]];
    known = std::max(known, repeat);
  }
  for (const auto& [id, repeat] : longest) {
    if (in_row(id, logits)) logits[static_cast<size_t>(id)] -= dry_penalty(params, repeat);
  }
}

}  // namespace

void process_logits(const SampleRow& row, std::span<float> logits) {
  keep_allowed(*row.params, logits);
  ban_bad_words(row, logits);
  hold_back_end(row, logits);
  for (const LogitBias& entry : row.params->logit_bias) {
    if (in_row(entry.token, logits)) logits[static_cast<size_t>(entry.token)] += entry.bias;
  }
  penalise_repetition(row, logits);
  penalise_longer_repeats(row, logits);
}

}  // namespace tinyvllm::reference
