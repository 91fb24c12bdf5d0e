// Runs steps. `submit` takes what the scheduler planned and returns at once on a device that works
// on its own; `wait` brings the sampled tokens. Between the two the scheduler may plan the next
// step. Steps finish in the order in which they were submitted.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "core/step_plan.h"

namespace tinyvllm {

using Ticket = uint64_t;

class Runner {
 public:
  virtual ~Runner() = default;
  virtual Ticket submit(const StepPlan& plan) = 0;
  virtual StepResult wait(Ticket ticket) = 0;
  // Whether a token that is so chosen can be fed before anybody has waited for it.
  virtual bool feeds_unseen(const SamplingParams& /*sampling*/) const { return true; }
};

}  // namespace tinyvllm
