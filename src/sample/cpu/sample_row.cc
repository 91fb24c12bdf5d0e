#include "sample/cpu/sample_row.h"

#include "sample/arithmetic.h"
#include "sample/cpu/candidates.h"
#include "sample/cpu/processors.h"
#include "sample/cpu/row.h"

namespace tinyvllm::cpu_sampler {
namespace {

struct Job {
  const Kernels& kernels;
  Row& row;
  Scratch& scratch;
};

// The weight of all tokens that reach the floor, by block and in all.
uint64_t weigh_blocks(const Job& job, const Octaves& octaves) {
  std::fill_n(job.scratch.masses, job.scratch.blocks, 0);
  uint64_t total = 0;
  job.row.for_each_block(octaves, [&](int64_t index, std::span<const float> block) {
    const uint64_t mass =
        job.kernels.mass(block.data(), static_cast<int64_t>(block.size()), octaves);
    job.scratch.masses[index] = mass;
    total += mass;
  });
  return total;
}

int32_t draw_from_all(const Job& job, const Octaves& octaves, const RandomKey& key) {
  const uint64_t total = weigh_blocks(job, octaves);
  uint64_t left = random_below(key, Draw::kToken, total);
  int64_t index = 0;
  for (; left >= job.scratch.masses[index]; ++index) left -= job.scratch.masses[index];
  const std::span<const float> block = job.row.block(index);
  uint32_t weights[kBlock];
  job.kernels.weights(block.data(), static_cast<int64_t>(block.size()), octaves, weights);
  int64_t i = 0;
  for (; left >= weights[i]; ++i) left -= weights[i];
  return static_cast<int32_t>(index * kBlock + i);
}

// How low, in octaves, the first tokens that weigh `need` can reach. All tokens lower than what is
// returned weigh less than the rest of the total, even if there were a whole vocabulary of them.
float lowest_of_mass(uint64_t need, uint64_t total, int64_t vocabulary) {
  const double each = static_cast<double>(total - need) / static_cast<double>(vocabulary);
  constexpr double kRounding = 0.5, kMargin = 0.01;  // weights are rounded, and approximate
  return static_cast<float>(std::log2(std::max(each - kRounding, 1.0)) - 30 - kMargin);
}

int32_t choose(const Job& job, const SampleRow& row) {
  const SamplingParams& params = *row.params;
  if (params.temperature == 0) return job.row.argmax();
  const RandomKey key{*params.seed, row.answer, row.position};
  const float top = job.row.top();
  Octaves octaves{top, octave_scale(params.temperature), floor_octaves(params.min_p)};

  const bool use_top_k = params.top_k > 0 && params.top_k < job.scratch.vocabulary;
  const bool use_typical = params.typical_p < 1;
  const bool use_top_p = params.top_p < 1;
  const bool use_xtc = params.xtc_probability > 0 && params.xtc_threshold <= 0.5 &&
                       random_unit(key, Draw::kXtc) < params.xtc_probability;
  if (!use_top_k && !use_typical && !use_top_p && !use_xtc && params.min_p == 0) {
    return draw_from_all(job, octaves, key);
  }

  // Few tokens are worth collecting: raise the floor to where the first filter is sure to cut.
  uint64_t nucleus = 0;
  if (use_top_k) {
    const float bound = job.row.bound_of_largest(params.top_k);
    octaves.floor = std::max(octaves.floor, octaves_of(bound, top, octaves.scale));
  } else if (use_top_p && !use_typical) {
    const uint64_t total = weigh_blocks(job, octaves);
    nucleus = share_of(params.top_p, total);
    octaves.floor = std::max(octaves.floor, lowest_of_mass(nucleus, total, job.scratch.vocabulary));
  }

  Candidates candidates(job.kernels, job.row, octaves, job.scratch);
  if (use_top_k) candidates.keep_top_k(params.top_k);
  candidates.weigh();
  if (use_typical) candidates.keep_typical(params.typical_p);
  if (use_top_p) {
    candidates.keep_mass(nucleus > 0 ? nucleus : share_of(params.top_p, candidates.total_weight()));
  }
  if (use_xtc) candidates.exclude_top(params.xtc_threshold);
  return candidates.draw(key);
}

// The model's own distribution, taken before anything is done to the row.
class Logprobs {
 public:
  Logprobs(const Job& job, const float* logits) : logits_(logits), top_(job.row.top()) {
    total_ = weigh_blocks(job, {top_, octave_scale(1), kFloorOctaves});
  }

  float of(int32_t token) const { return logprob_of(logits_[token], top_, total_); }

  std::vector<TokenLogprob> likeliest(const Job& job, int count) const {
    std::vector<TokenLogprob> top;
    if (count == 0) return top;
    const Octaves at_least{top_, 1, job.row.bound_of_largest(count) - top_};
    Candidates candidates(job.kernels, job.row, at_least, job.scratch);
    candidates.keep_top_k(count);
    for (const int32_t id : candidates.ranked()) top.push_back({id, of(id)});
    return top;
  }

 private:
  const float* logits_;
  const float top_;
  uint64_t total_;
};

}  // namespace

SampleOutput sample_row(const Kernels& kernels, const float* logits, const SampleRow& row,
                        Scratch& scratch) {
  SampleOutput out;
  Row view(kernels, logits, scratch);
  if (!view.is_distribution()) return out;
  const Job job{kernels, view, scratch};
  std::optional<Logprobs> logprobs;
  if (row.params->logprobs) {
    logprobs.emplace(job, logits);
    out.top = logprobs->likeliest(job, *row.params->logprobs);
  }
  if (changes_logits(row)) process_logits(row, view, scratch);
  if (!view.is_distribution()) {
    out.token = kNothingAllowed;
    out.top.clear();
    return out;
  }
  out.token = choose(job, row);
  if (logprobs) out.logprob = logprobs->of(out.token);
  return out;
}

SampleOutput score_row(const Kernels& kernels, const float* logits, const ScoreRow& row,
                       Scratch& scratch) {
  SampleOutput out;
  Row view(kernels, logits, scratch);
  if (!view.is_distribution()) return out;
  const Job job{kernels, view, scratch};
  const Logprobs logprobs(job, logits);
  out.token = row.token;
  out.logprob = logprobs.of(row.token);
  out.top = logprobs.likeliest(job, row.top);
  return out;
}

}  // namespace tinyvllm::cpu_sampler
