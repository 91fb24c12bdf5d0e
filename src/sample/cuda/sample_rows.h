// Tokens chosen where the logits are (sampler.h says how). Without CUDA: no_cuda/.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "sample/block/device_row.h"

namespace tinyvllm::cuda_sampler {

// tokens[i] = what rows[i] chooses, and scores[i] what it wants besides; `scores` may be null if no
// row wants any. Everything is on the device: `rows` as staged from PackedRows, with their words
// behind them; logits [.., width], rows `stride` apart, not written to; scratch of scratch_bytes();
// previous: tokens of the step before, for rows with one in flight, not overlapping `tokens`. Only
// enqueues.
void sample_rows(Device& device, const float* logits, int64_t stride, int64_t width,
                 const block_sampler::DeviceRow* rows, int64_t count, const int32_t* previous,
                 void* scratch, int32_t* tokens, block_sampler::Scores* scores);

}  // namespace tinyvllm::cuda_sampler
