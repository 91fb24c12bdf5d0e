// Tokens still in question, in ascending id, and what cuts them down. Nothing is sorted but what
// lies around a cut: a filter keeps the first tokens by some value, so it is enough to find the
// last one that stays.
#pragma once

#include <cstdint>

#include "sample/cpu/row.h"
#include "sample/random.h"

namespace tinyvllm::cpu_sampler {

class Candidates {
 public:
  // Those of the row that reach the floor. From here on the row's edits are void: their memory is
  // ours.
  Candidates(const Kernels& kernels, const Row& row, const Octaves& octaves, Scratch& scratch);

  int64_t size() const { return size_; }
  void keep_top_k(int64_t k);
  std::span<const int32_t> ranked();  // their ids, likeliest first

  // What follows needs weights.
  void weigh() { kernels_.weights(columns_.values, size_, octaves_, columns_.weights); }
  uint64_t total_weight() const;
  void keep_mass(uint64_t need);  // the likeliest that together weigh as much
  void keep_typical(double share);
  void exclude_top(double threshold);
  int32_t draw(const RandomKey& key) const;

 private:
  // A place in the order by descending value, equals by ascending id.
  struct Place {
    float value;
    int32_t id;
  };
  // Of the first candidates by `values` that together weigh `need`, the last.
  Place find_cut(float* values, uint64_t need) const;
  void keep_up_to(const float* values, const Place& last);

  const Kernels& kernels_;
  const Octaves octaves_;
  const Columns columns_;  // [size] each; values are logits
  const Columns members_;  // [size] each, of find_cut
  float* const scores_;    // [size], of keep_typical
  int64_t size_ = 0;
};

}  // namespace tinyvllm::cpu_sampler
