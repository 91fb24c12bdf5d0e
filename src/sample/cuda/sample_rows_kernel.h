#pragma once

#include <cstdint>

#include "sample/block/device_row.h"

struct CUstream_st;

namespace tinyvllm::cuda_sampler {

void launch_sample_rows(const float* logits, int64_t stride, int64_t width,
                        const block_sampler::DeviceRow* rows, int64_t count,
                        const int32_t* previous, uint32_t* scratch, int32_t* tokens,
                        block_sampler::Scores* scores, CUstream_st* stream);

}  // namespace tinyvllm::cuda_sampler
