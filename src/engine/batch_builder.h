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

  BatchSizes sizes(const StepPlan& plan) const;

  // At these sizes or larger ones: what the plan does not fill are sequences of one token that see
  // and write nothing but the null block. `sampled` are the tokens of the step before, by row: what
  // a token "from row r" stands for; null: only the device knows, and the token stays ~r. The batch
  // becomes `inputs`; it points nowhere until they are where the device sees them.
  Batch build(const StepPlan& plan, const BatchSizes& sizes, const std::vector<int32_t>* sampled,
              std::vector<int32_t>& inputs) const;

 private:
  const int num_groups_;
  const int block_size_;
};

}  // namespace tinyvllm
