#include "sample/cpu/candidates.h"

#include <numeric>

#include "base/check.h"
#include "sample/arithmetic.h"

namespace tinyvllm::cpu_sampler {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// So few candidates are sorted; a cut among more is looked for in ever smaller intervals.
constexpr int64_t kSortable = 48;

// An interval that probably holds the cut after `share` of the total weight, judged by a few of the
// tokens. `width` is how many of those it spans to each side; 0 makes it a single value.
Interval guess_cut(const Columns& tokens, int64_t size, double share, int width) {
  constexpr int kProbes = 64;
  struct Probe {
    float value;
    uint32_t weight;
  } probes[kProbes];
  double total = 0;
  for (int i = 0; i < kProbes; ++i) {
    const int64_t at = size * i / kProbes;
    probes[i] = {tokens.values[at], tokens.weights[at]};
    total += probes[i].weight;
  }
  std::sort(probes, probes + kProbes,
            [](const Probe& a, const Probe& b) { return a.value > b.value; });
  int cut = 0;
  for (double passed = probes[0].weight; cut < kProbes - 1 && passed < share * total;) {
    passed += probes[++cut].weight;
  }
  return {probes[std::min(cut + width, kProbes - 1)].value, probes[std::max(cut - width, 0)].value};
}

}  // namespace

Candidates::Candidates(const Kernels& kernels, const Row& row, const Octaves& octaves,
                       Scratch& scratch)
    : kernels_(kernels),
      octaves_(octaves),
      columns_(scratch.candidates),
      members_(scratch.members),
      scores_(scratch.edited) {
  row.for_each_block(octaves, [&](int64_t index, std::span<const float> block) {
    size_ += kernels.collect(block.data(), static_cast<int64_t>(block.size()),
                             static_cast<int32_t>(index * kBlock), octaves, columns_.values + size_,
                             columns_.ids + size_);
  });
}

uint64_t Candidates::total_weight() const {
  return std::accumulate(columns_.weights, columns_.weights + size_, uint64_t{0});
}

Candidates::Place Candidates::find_cut(float* values, uint64_t need) const {
  Columns tokens = {values, columns_.ids, columns_.weights};
  int64_t size = size_;
  uint64_t total = total_weight();
  bool equal = false;
  for (int width = 3; size > kSortable && !equal;) {
    const double share = static_cast<double>(need) / static_cast<double>(total);
    Interval interval = guess_cut(tokens, size, share, width);
    uint64_t above = 0, inside = 0;
    kernels_.mass_around(tokens.values, tokens.weights, size, interval, &above, &inside);
    if (above >= need) {
      total = above;
      interval = {std::nextafterf(interval.most, kInfinity), kInfinity};
    } else if (above + inside >= need) {
      need -= above;
      total = inside;
      equal = interval.least == interval.most;
    } else {
      need -= above + inside;
      total -= above + inside;
      interval = {-kInfinity, std::nextafterf(interval.least, -kInfinity)};
    }
    const int64_t kept = kernels_.keep(tokens.values, size, interval, tokens, members_);
    if (kept == size) width = 0;  // a guess of one value is sure to part them
    size = kept;
    tokens = members_;
  }

  // Ids ascend, so that equals are in order; the others are few.
  int32_t order[kSortable];
  const auto at = [&](int64_t i) { return equal ? i : order[i]; };
  if (!equal) {
    std::iota(order, order + size, 0);
    std::sort(order, order + size, [&](int32_t a, int32_t b) {
      return tokens.values[a] != tokens.values[b] ? tokens.values[a] > tokens.values[b] : a < b;
    });
  }
  int64_t i = 0;
  for (; tokens.weights[at(i)] < need; ++i) need -= tokens.weights[at(i)];
  return {tokens.values[at(i)], tokens.ids[at(i)]};
}

void Candidates::keep_up_to(const float* values, const Place& last) {
  size_ = kernels_.keep(values, size_, {last.value, kInfinity, last.id}, columns_, columns_);
}

void Candidates::keep_top_k(int64_t k) {
  if (k >= size_) return;
  std::fill_n(columns_.weights, size_, 1);
  keep_up_to(columns_.values, find_cut(columns_.values, static_cast<uint64_t>(k)));
}

void Candidates::keep_mass(uint64_t need) {
  keep_up_to(columns_.values, find_cut(columns_.values, need));
}

void Candidates::keep_typical(double share) {
  uint64_t steps = 0;
  for (int64_t i = 0; i < size_; ++i) {
    scores_[i] = octaves_of(columns_.values[i], octaves_.top, octaves_.scale);
    steps += columns_.weights[i] * surprise_steps(scores_[i]);
  }
  const uint64_t total = total_weight();
  const float mean = mean_surprise(steps, total);
  for (int64_t i = 0; i < size_; ++i) scores_[i] = -atypicality(scores_[i], mean);
  keep_up_to(scores_, find_cut(scores_, share_of(share, total)));
}

void Candidates::exclude_top(double threshold) {
  const uint64_t need = share_of(threshold, total_weight());
  int64_t last = -1;  // of the likely ones, by rank
  for (int64_t i = 0; i < size_; ++i) {
    if (columns_.weights[i] < need) continue;
    if (last < 0 || columns_.values[i] <= columns_.values[last]) last = i;
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < size_; ++i) {
    if (columns_.weights[i] >= need && i != last) continue;
    columns_.ids[kept] = columns_.ids[i];
    columns_.weights[kept++] = columns_.weights[i];
  }
  size_ = kept;
}

int32_t Candidates::draw(const RandomKey& key) const {
  uint64_t left = random_below(key, Draw::kToken, total_weight());
  for (int64_t i = 0; i < size_; ++i) {
    if (left < columns_.weights[i]) return columns_.ids[i];
    left -= columns_.weights[i];
  }
  CHECK(false) << "a number below the total weight lies within it";
  return 0;
}

std::span<const int32_t> Candidates::ranked() {
  std::copy_n(columns_.ids, size_, members_.ids);
  const auto logit = [&](int32_t id) {
    return columns_.values[std::lower_bound(columns_.ids, columns_.ids + size_, id) - columns_.ids];
  };
  std::sort(members_.ids, members_.ids + size_, [&](int32_t a, int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  return {members_.ids, static_cast<size_t>(size_)};
}

}  // namespace tinyvllm::cpu_sampler
