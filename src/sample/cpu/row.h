// A row of logits as the CPU looks at it: in blocks with known maxima. Edits copy a block the first
// time they touch it, since rows may share logits and most requests touch few blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "sample/cpu/kernels.h"
#include "sample/cpu/scratch.h"
#include "sample/weight.h"

namespace tinyvllm::cpu_sampler {

class Row {
 public:
  Row(const Kernels& kernels, const float* logits, Scratch& scratch);

  // Whether there is something to choose from: no NaN, and a finite maximum.
  bool is_distribution() const { return numbers_ && std::isfinite(top_); }
  float top() const { return top_; }

  int64_t blocks() const { return scratch_.blocks; }
  float maximum(int64_t block) const { return scratch_.maxima[block]; }
  std::span<const float> block(int64_t block) const {
    const float* from = scratch_.states[block] == BlockState::kEdited ? scratch_.edited : logits_;
    const int64_t begin = block * kBlock;
    return {from + begin, static_cast<size_t>(std::min(kBlock, scratch_.vocabulary - begin))};
  }

  // The logit with that id, to be changed, or null where nothing can change: an id outside the
  // vocabulary, a block that is out. After edits, `rescan`.
  float* edit(int32_t id);
  void keep_only(std::span<const int32_t> ids);
  void rescan();

  // The lowest id of the largest logit.
  int32_t argmax() const;

  // A logit that is at most the count-th largest: the count-th largest of the blocks' maxima, or
  // minus infinity when there are not as many blocks.
  float bound_of_largest(int64_t count) const;

  // Calls visit(index, block) for each block with a token that reaches the floor.
  template <class Visit>
  void for_each_block(const Octaves& octaves, Visit visit) const {
    for (int64_t b = 0; b < scratch_.blocks; ++b) {
      if (octaves_of(scratch_.maxima[b], octaves.top, octaves.scale) >= octaves.floor) {
        visit(b, block(b));
      }
    }
  }

 private:
  const Kernels& kernels_;
  const float* logits_;
  Scratch& scratch_;
  bool numbers_;
  float top_;
};

}  // namespace tinyvllm::cpu_sampler
