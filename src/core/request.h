// A request as the engine knows it: token ids in, token ids out. Text and templates stay outside.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sampling_params.h"
#include "core/step_plan.h"

namespace tinyvllm {

struct Request {
  SequenceId id = 0;
  std::vector<int32_t> prompt;
  SamplingParams sampling;
};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };
const char* to_string(FinishReason reason);  // "stop", "length", …; "" for kNone

}  // namespace tinyvllm
