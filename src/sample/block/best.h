// The largest of a row's logits, and whether all of them are numbers.
#pragma once

#include <stdint.h>

#include "sample/portable.h"

namespace tinyvllm::block_sampler {

constexpr float kOut = -__builtin_huge_valf();

struct Best {
  float value = kOut;
  int32_t id = INT32_MAX;
  bool nan = false;

  TINYVLLM_ANYWHERE void meet(float logit, int32_t at) {
    nan |= logit != logit;
    if (logit > value || (logit == value && at < id)) {
      value = logit;
      id = at;
    }
  }
  TINYVLLM_ANYWHERE void meet(const Best& other) {
    nan |= other.nan;
    meet(other.value, other.id);
  }

  // Whether there is something to choose from: no NaN, and a finite maximum.
  TINYVLLM_ANYWHERE bool is_distribution() const { return !nan && value > kOut && value < -kOut; }
};

// Calls visit(id, logit) for a thread's part of a row, with several loads under way.
template <class Block, class Visit>
TINYVLLM_BLOCK void for_each_logit(const Block& block, const float* logits, int32_t width,
                                   Visit visit) {
  constexpr int kLoads = 8;
  const int32_t step = block.threads();
  int32_t id = block.thread();
  for (; id + (kLoads - 1) * step < width; id += kLoads * step) {
    float v[kLoads];
    for (int i = 0; i < kLoads; ++i) v[i] = logits[id + i * step];
    for (int i = 0; i < kLoads; ++i) visit(id + i * step, v[i]);
  }
  for (; id < width; id += step) visit(id, logits[id]);
}

}  // namespace tinyvllm::block_sampler
