// StepPlan → Batch: flattens what the scheduler decided into the one buffer that goes to the
// device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch.h"
#include "core/step_plan.h"

namespace tinyvllm {

class BatchBuilder {
 public:
  BatchBuilder(int num_groups, int block_size) : num_groups_(num_groups), block_size_(block_size) {}

  // `sampled` are the tokens of the step before, by row: what a token "from row r" stands for. The
  // batch points into this builder and is good until the next build.
  Batch build(const StepPlan& plan, const std::vector<int32_t>& sampled);

 private:
  const int num_groups_;
  const int block_size_;
  std::vector<int32_t> buffer_;  // keeps its capacity from step to step
};

}  // namespace tinyvllm
