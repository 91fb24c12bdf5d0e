// What is behind a Linear; each device adds its own layout.
#pragma once

#include "ops/linear.h"

namespace tinyvllm::ops {

struct Linear::Weights {
  virtual ~Weights() = default;

  int64_t in = 0;
  int64_t out = 0;
  size_t bytes = 0;
  DType dtype = DType::kF32;  // of the first part
  const char* reason = "";    // why its kernel was chosen, a literal
};

}  // namespace tinyvllm::ops
