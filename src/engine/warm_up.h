// What a device does for the first time it does while a model is loaded, and not in somebody's
// first prompt: kernels and libraries are loaded when they are first used.
#pragma once

#include <functional>

#include "base/result.h"
#include "core/step_plan.h"

namespace tinyvllm {

struct WarmUp {
  size_t groups = 0;  // of the KV cache
  int block_size = 0;
  int most_tokens = 0;  // of a step
};

// Products of few and of many rows, both ways to attend, both ways to choose a token, a decode step
// often enough to be recorded. All of it in the null block.
Status warm_up(const std::function<StepResult(const StepPlan&)>& run, const WarmUp& sizes);

}  // namespace tinyvllm
