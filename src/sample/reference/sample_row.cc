#include "sample/reference/sample_row.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sample/arithmetic.h"
#include "sample/random.h"
#include "sample/reference/processors.h"

namespace tinyvllm::reference {
namespace {

struct Candidate {
  int32_t id;
  float logit;
  float octaves;
  uint64_t weight;
};
using Candidates = std::vector<Candidate>;

bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The largest, the lowest id among equals.
int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

bool is_distribution(std::span<const float> logits) {
  for (const float logit : logits) {
    if (std::isnan(logit)) return false;
  }
  return !logits.empty() && std::isfinite(logits[static_cast<size_t>(argmax(logits))]);
}

// Tokens down to `floor` octaves under the likeliest, ranked.
Candidates rank(std::span<const float> logits, float scale, float floor) {
  const float top = *std::max_element(logits.begin(), logits.end());
  Candidates ranked;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float octaves = octaves_of(logits[i], top, scale);
    if (octaves >= floor) {
      ranked.push_back({static_cast<int32_t>(i), logits[i], octaves, weight_of(octaves)});
    }
  }
  std::sort(ranked.begin(), ranked.end(), ranks_before);
  return ranked;
}

uint64_t total_weight(const Candidates& kept) {
  uint64_t total = 0;
  for (const Candidate& candidate : kept) total += candidate.weight;
  return total;
}

// How many of the first tokens it takes to reach that share of their mass.
ptrdiff_t prefix_of_mass(const Candidates& kept, double share) {
  const uint64_t need = share_of(share, total_weight(kept));
  uint64_t mass = 0;
  ptrdiff_t count = 0;
  while (mass < need) mass += kept[static_cast<size_t>(count++)].weight;
  return count;
}

void keep_top_k(int k, Candidates& kept) {
  if (k > 0 && static_cast<size_t>(k) < kept.size()) kept.resize(static_cast<size_t>(k));
}

void keep_typical(double share, Candidates& kept) {
  if (share >= 1) return;
  uint64_t steps = 0;
  for (const Candidate& candidate : kept) {
    steps += candidate.weight * surprise_steps(candidate.octaves);
  }
  const float mean = mean_surprise(steps, total_weight(kept));
  std::sort(kept.begin(), kept.end(), [&](const Candidate& a, const Candidate& b) {
    const float x = atypicality(a.octaves, mean);
    const float y = atypicality(b.octaves, mean);
    return x != y ? x < y : a.id < b.id;
  });
  kept.erase(kept.begin() + prefix_of_mass(kept, share), kept.end());
  std::sort(kept.begin(), kept.end(), ranks_before);
}

void keep_top_p(double share, Candidates& kept) {
  if (share < 1) kept.erase(kept.begin() + prefix_of_mass(kept, share), kept.end());
}

void exclude_top(const SamplingParams& params, const RandomKey& key, Candidates& kept) {
  if (params.xtc_probability <= 0 || params.xtc_threshold > 0.5) return;
  if (random_unit(key, Draw::kXtc) >= params.xtc_probability) return;
  const uint64_t need = share_of(params.xtc_threshold, total_weight(kept));
  const auto likely = [&](const Candidate& candidate) { return candidate.weight >= need; };
  auto others = std::count_if(kept.begin(), kept.end(), likely) - 1;
  std::erase_if(kept, [&](const Candidate& c) { return likely(c) && others-- > 0; });
}

int32_t draw(const RandomKey& key, Candidates kept) {
  std::sort(kept.begin(), kept.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  uint64_t left = random_below(key, Draw::kToken, total_weight(kept));
  for (const Candidate& candidate : kept) {
    if (left < candidate.weight) return candidate.id;
    left -= candidate.weight;
  }
  CHECK(false) << "a number below the total weight lies within it";
  return kNotNumbers;
}

int32_t choose(const SampleRow& row, std::span<const float> logits) {
  const SamplingParams& params = *row.params;
  if (params.temperature == 0) return argmax(logits);
  const RandomKey key{*params.seed, row.answer, row.position};
  Candidates kept = rank(logits, octave_scale(params.temperature), floor_octaves(params.min_p));
  keep_top_k(params.top_k, kept);
  keep_typical(params.typical_p, kept);
  keep_top_p(params.top_p, kept);
  exclude_top(params, key, kept);
  return draw(key, std::move(kept));
}

void add_logprobs(std::span<const float> logits, int count, SampleOutput& out) {
  const float top = *std::max_element(logits.begin(), logits.end());
  const float scale = octave_scale(1);
  uint64_t total = 0;
  for (const float logit : logits) total += weight_of(octaves_of(logit, top, scale));
  out.logprob = logprob_of(logits[static_cast<size_t>(out.token)], top, total);

  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  ids.resize(std::min(ids.size(), static_cast<size_t>(count)));
  for (const int32_t id : ids) {
    out.top.push_back({id, logprob_of(logits[static_cast<size_t>(id)], top, total)});
  }
}

}  // namespace

SampleOutput sample_row(const float* logits, int64_t vocabulary, const SampleRow& row) {
  const std::span<const float> raw(logits, static_cast<size_t>(vocabulary));
  SampleOutput out;
  if (!is_distribution(raw)) return out;
  std::vector<float> processed(raw.begin(), raw.end());
  process_logits(row, processed);
  if (!is_distribution(processed)) {
    out.token = kNothingAllowed;
    return out;
  }
  out.token = choose(row, processed);
  if (row.params->logprobs) add_logprobs(raw, *row.params->logprobs, out);
  return out;
}

SampleOutput score_row(const float* logits, int64_t vocabulary, const ScoreRow& row) {
  const std::span<const float> raw(logits, static_cast<size_t>(vocabulary));
  SampleOutput out;
  if (!is_distribution(raw)) return out;
  out.token = row.token;
  add_logprobs(raw, row.top, out);
  return out;
}

}  // namespace tinyvllm::reference
