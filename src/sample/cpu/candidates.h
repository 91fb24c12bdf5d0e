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
  int32_t id(int64_t i) const { return ids_[i]; }
  float logit(int64_t i) const { return logits_[i]; }

  void keep_top_k(int64_t k);
  std::span<const int32_t> ranked();  // their indices, likeliest first

  // What follows needs weights.
  void weigh() { kernels_.weights(logits_, size_, octaves_, weights_); }
  uint64_t total_weight() const;
  void keep_mass(uint64_t need);  // the likeliest that together weigh as much
  void keep_typical(double share);
  void exclude_top(double threshold);
  int32_t draw(const RandomKey& key) const;

 private:
  // A place in the order by descending value, equals by ascending index.
  struct Place {
    float value;
    int64_t index;
  };
  // The last of the first candidates that together weigh `need` (each one, without weights). Their
  // values lie between low and high; that is for speed.
  Place find_cut(const float* values, const uint32_t* weights, uint64_t need, float low,
                 float high);
  void keep_up_to(const float* values, const Place& last);
  float lowest_logit() const { return octaves_.top + octaves_.floor / octaves_.scale; }
  template <class Keep>
  void keep_if(Keep keep);

  const Kernels& kernels_;
  const Octaves octaves_;
  int64_t size_ = 0;
  float* logits_;      // [size]
  int32_t* ids_;       // [size]
  uint32_t* weights_;  // [size]
  float* scores_;      // [size], of keep_typical
  int32_t* members_;   // [size], of find_cut and ranked
};

}  // namespace tinyvllm::cpu_sampler
