#include "sample/cpu/candidates.h"

#include <numeric>

#include "base/check.h"
#include "sample/arithmetic.h"

namespace tinyvllm::cpu_sampler {
namespace {

// A cut is looked for by histogram until so few candidates are left that sorting them is quicker.
constexpr int kBuckets = 1024;
constexpr int64_t kSortable = 48;

}  // namespace

Candidates::Candidates(const Kernels& kernels, const Row& row, const Octaves& octaves,
                       Scratch& scratch)
    : kernels_(kernels),
      octaves_(octaves),
      logits_(scratch.logits),
      ids_(scratch.ids),
      weights_(scratch.weights),
      scores_(scratch.edited),
      members_(scratch.members) {
  row.for_each_block(octaves, [&](int64_t index, std::span<const float> block) {
    size_ += kernels.collect(block.data(), static_cast<int64_t>(block.size()),
                             static_cast<int32_t>(index * kBlock), octaves, logits_ + size_,
                             ids_ + size_);
  });
}

uint64_t Candidates::total_weight() const {
  return std::accumulate(weights_, weights_ + size_, uint64_t{0});
}

Candidates::Place Candidates::find_cut(const float* values, const uint32_t* weights, uint64_t need,
                                       float low, float high) {
  const auto weight = [&](int64_t i) { return weights == nullptr ? 1 : uint64_t{weights[i]}; };
  int64_t size = size_;
  std::iota(members_, members_ + size, 0);
  while (size > kSortable) {
    const float per_value = kBuckets / (high - low);
    if (!std::isfinite(per_value) || per_value <= 0) break;
    const auto bucket_of = [&](int64_t i) {
      return static_cast<int>(std::clamp<float>((high - values[i]) * per_value, 0, kBuckets - 1));
    };
    uint64_t mass[kBuckets] = {};
    for (int64_t i = 0; i < size; ++i) mass[bucket_of(members_[i])] += weight(members_[i]);
    int cut = 0;
    while (mass[cut] < need) need -= mass[cut++];

    // On with the cut's bucket alone. Within its own bounds its lowest and highest will part.
    float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;
    int64_t kept = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int32_t member = members_[i];
      if (bucket_of(member) != cut) continue;
      members_[kept++] = member;
      lowest = std::min(lowest, values[member]);
      highest = std::max(highest, values[member]);
    }
    size = kept;
    low = lowest;
    high = highest;
  }
  const auto before = [values](int32_t a, int32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  if (!std::is_sorted(members_, members_ + size, before)) {
    std::sort(members_, members_ + size, before);
  }
  int64_t i = 0;
  for (; weight(members_[i]) < need; ++i) need -= weight(members_[i]);
  return {values[members_[i]], members_[i]};
}

template <class Keep>
void Candidates::keep_if(Keep keep) {
  int64_t kept = 0;
  for (int64_t i = 0; i < size_; ++i) {
    const bool stays = keep(i);
    logits_[kept] = logits_[i];
    ids_[kept] = ids_[i];
    weights_[kept] = weights_[i];
    kept += stays ? 1 : 0;
  }
  size_ = kept;
}

void Candidates::keep_up_to(const float* values, const Place& last) {
  keep_if([&](int64_t i) {
    return values[i] > last.value || (values[i] == last.value && i <= last.index);
  });
}

void Candidates::keep_top_k(int64_t k) {
  if (k >= size_) return;
  keep_up_to(logits_,
             find_cut(logits_, nullptr, static_cast<uint64_t>(k), lowest_logit(), octaves_.top));
}

void Candidates::keep_mass(uint64_t need) {
  keep_up_to(logits_, find_cut(logits_, weights_, need, lowest_logit(), octaves_.top));
}

void Candidates::keep_typical(double share) {
  uint64_t steps = 0;
  for (int64_t i = 0; i < size_; ++i) {
    scores_[i] = octaves_of(logits_[i], octaves_.top, octaves_.scale);
    steps += weights_[i] * surprise_steps(scores_[i]);
  }
  const uint64_t total = total_weight();
  const float mean = mean_surprise(steps, total);
  for (int64_t i = 0; i < size_; ++i) scores_[i] = -atypicality(scores_[i], mean);
  keep_up_to(scores_, find_cut(scores_, weights_, share_of(share, total), kFloorOctaves, 0));
}

void Candidates::exclude_top(double threshold) {
  const uint64_t need = share_of(threshold, total_weight());
  int64_t last = -1;  // of the likely ones, by rank
  for (int64_t i = 0; i < size_; ++i) {
    if (weights_[i] >= need && (last < 0 || logits_[i] <= logits_[last])) last = i;
  }
  keep_if([&](int64_t i) { return weights_[i] < need || i == last; });
}

int32_t Candidates::draw(const RandomKey& key) const {
  uint64_t left = random_below(key, Draw::kToken, total_weight());
  for (int64_t i = 0; i < size_; ++i) {
    if (left < weights_[i]) return ids_[i];
    left -= weights_[i];
  }
  CHECK(false) << "a number below the total weight lies within it";
  return 0;
}

std::span<const int32_t> Candidates::ranked() {
  std::iota(members_, members_ + size_, 0);
  std::sort(members_, members_ + size_, [this](int32_t a, int32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  });
  return {members_, static_cast<size_t>(size_)};
}

}  // namespace tinyvllm::cpu_sampler
