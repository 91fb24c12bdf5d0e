// Chooses a token from a row of logits. Runs inside the runner, on the device that has the logits.
#pragma once

#include <cstdint>
#include <span>

#include "core/sampling_params.h"
#include "device/exec_context.h"

namespace tinyvllm {

struct SampleRow {
  const SamplingParams* params = nullptr;
  uint32_t position = 0;  // of the token being chosen
  int64_t logit_row = 0;  // of the logits
};

struct SampleOutput {
  int32_t token = -1;  // -1: the row has a NaN, or no finite logit at all
  float logprob = 0;   // under the model, before temperature
};

// logits: [at least one row per sample, vocabulary] F32. Each row is chosen on its own: its company
// changes nothing.
void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out);

}  // namespace tinyvllm
