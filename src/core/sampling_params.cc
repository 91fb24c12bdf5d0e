#include "core/sampling_params.h"

#include <cmath>

namespace tinyvllm {

Status validate(const SamplingParams& params) {
  if (!std::isfinite(params.temperature) || params.temperature < 0) {
    return error("temperature: expected a number of at least 0, found ", params.temperature);
  }
  if (params.max_tokens < 1) {
    return error("max_tokens: expected at least 1, found ", params.max_tokens);
  }
  return Status();
}

}  // namespace tinyvllm
