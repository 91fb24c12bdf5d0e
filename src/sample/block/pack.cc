#include "sample/block/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "sample/arithmetic.h"
#include "sample/block/sample_row.h"
#include "sample/random.h"

namespace tinyvllm::block_sampler {
namespace {

static_assert(kNotNumbersHere == kNotNumbers && kNothingAllowedHere == kNothingAllowed);
constexpr size_t kMostBiases = 1024;
constexpr size_t kWordsPerRow = sizeof(DeviceRow) / sizeof(int32_t);

std::span<const int32_t> answer_of(const SampleRow& row) {
  return row.history.subspan(std::min<size_t>(row.prompt_tokens, row.history.size()));
}

bool holds_back_end(const SampleRow& row) {
  return static_cast<int64_t>(row.position) - row.prompt_tokens < row.params->min_tokens;
}

bool ends_in(std::span<const int32_t> answer, std::span<const int32_t> tokens) {
  if (tokens.size() > answer.size()) return false;
  const std::span<const int32_t> last = answer.last(tokens.size());
  return std::equal(last.begin(), last.end(), tokens.begin());
}

}  // namespace

bool supports_vocabulary(int64_t width) { return width > 0 && width <= kMostTokens; }
bool supports_filters(const SamplingParams& params) {
  return params.typical_p >= 1 && (params.xtc_probability <= 0 || params.xtc_threshold > 0.5);
}
bool supports_penalties(const SamplingParams& params) { return !uses_dry(params); }
bool supports_biases(const SamplingParams& params) {
  return params.logit_bias.size() <= kMostBiases;
}
bool supports_logprobs(const SamplingParams& params) {
  return params.logprobs.value_or(0) <= kMostScores;
}
bool supports(const SamplingParams& params, int64_t width) {
  return supports_vocabulary(width) && supports_filters(params) && supports_penalties(params) &&
         supports_biases(params) && supports_logprobs(params);
}

Words PackedRows::append(std::span<const int32_t> ids) {
  const uint32_t begin = end();
  words_.insert(words_.end(), ids.begin(), ids.end());
  return {begin, end()};
}

// A word's last token, where the answer ends in those before it.
Words PackedRows::append_banned(const SampleRow& row, bool in_flight) {
  const uint32_t begin = end();
  for (const std::vector<int32_t>& word : row.params->bad_words_token_ids) {
    if (word.empty() || (in_flight && word.size() > 1)) continue;
    if (ends_in(answer_of(row), std::span(word).first(word.size() - 1))) {
      words_.push_back(word.back());
    }
  }
  if (holds_back_end(row)) {
    append(row.end_ids);
    append(row.params->stop_token_ids);
  }
  return {begin, end()};
}

// The same where the last of those before it is still to be known.
Words PackedRows::append_banned_after(const SampleRow& row) {
  const uint32_t begin = end();
  for (const std::vector<int32_t>& word : row.params->bad_words_token_ids) {
    if (word.size() > 1 && ends_in(answer_of(row), std::span(word).first(word.size() - 2))) {
      append(std::span(word).last(2));
    }
  }
  return {begin, end()};
}

void PackedRows::append_edits(const SampleRow& row, DeviceRow& to) {
  const SamplingParams& params = *row.params;
  const bool in_flight = to.in_flight >= 0;
  if (params.allowed_token_ids) to.allowed = append(*params.allowed_token_ids);
  to.banned = append_banned(row, in_flight);
  if (in_flight) to.banned_after = append_banned_after(row);
  to.biases.begin = end();
  for (const LogitBias& entry : params.logit_bias) {
    words_.push_back(entry.token);
    words_.push_back(std::bit_cast<int32_t>(entry.bias));
  }
  to.biases.end = end();
  if (to.repetition != 1) to.seen = append(row.history);
  if (to.frequency != 0 || to.presence != 0) {
    const std::span<const int32_t> answer = answer_of(row);
    const auto count = static_cast<uint32_t>(answer.size());
    to.answer = to.repetition != 1 ? Words{to.seen.end - count, to.seen.end} : append(answer);
  }
}

DeviceRow PackedRows::pack_row(const SampleRow& row, int64_t width) {
  const SamplingParams& params = *row.params;
  CHECK(params.temperature == 0 || params.seed)
      << "a request without a seed gets one before it is sampled";
  CHECK(row.history.size() + (row.in_flight >= 0 ? 1 : 0) == row.position || !needs_history(params))
      << "position " << row.position << " after " << row.history.size() << " tokens";
  DeviceRow to{};
  to.logit_row = row.logit_row;
  to.in_flight = needs_history(params) ? row.in_flight : -1;
  to.top_p = 1;
  to.floor = kFloorOctaves;
  to.scores = params.logprobs.value_or(-1);
  if (params.temperature != 0) {
    to.random = random_bits({*params.seed, row.answer, row.position}, Draw::kToken);
    to.top_p = params.top_p;
    to.scale = octave_scale(params.temperature);
    to.floor = floor_octaves(params.min_p);
    to.top_k = params.top_k > 0 && params.top_k < width ? params.top_k : 0;
  }
  to.only_allowed = params.allowed_token_ids ? 1 : 0;
  to.repetition = static_cast<float>(params.repetition_penalty);
  to.frequency = static_cast<float>(params.frequency_penalty);
  to.presence = static_cast<float>(params.presence_penalty);

  const uint32_t begin = end();
  append_edits(row, to);
  const bool edits = end() > begin || to.only_allowed != 0 || to.in_flight >= 0;
  to.edited = edits ? edited_++ : -1;
  return to;
}

void PackedRows::pack(std::span<const SampleRow> rows, int64_t width) {
  first_word_ = rows.size() * kWordsPerRow;
  edited_ = 0;
  wants_scores_ = false;
  words_.assign(first_word_, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const DeviceRow to = pack_row(rows[i], width);
    wants_scores_ |= to.scores >= 0;
    std::memcpy(words_.data() + i * kWordsPerRow, &to, sizeof to);
  }
}

size_t scratch_bytes(int64_t rows, int64_t width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width) * sizeof(uint32_t);
}

SampleOutput unpack(const SampleRow& row, int32_t token, const Scores* scores) {
  SampleOutput out;
  out.token = token;
  if (token < 0 || !row.params->logprobs) return out;
  const auto logprob = [&](float logit) { return logprob_of(logit, scores->top, scores->total); };
  out.logprob = logprob(scores->chosen);
  int32_t order[kMostScores];
  for (int32_t i = 0; i < scores->count; ++i) order[i] = i;
  std::sort(order, order + scores->count, [&](int32_t a, int32_t b) {
    return scores->logits[a] != scores->logits[b] ? scores->logits[a] > scores->logits[b]
                                                  : scores->ids[a] < scores->ids[b];
  });
  for (int32_t i = 0; i < scores->count; ++i) {
    out.top.push_back({scores->ids[order[i]], logprob(scores->logits[order[i]])});
  }
  return out;
}

}  // namespace tinyvllm::block_sampler
