#pragma once

#include <cstdint>

struct CUstream_st;

namespace tinyvllm::cuda_sampler {

// rows: null for row i of the logits as row i of the tokens
void launch_greedy(const float* logits, int64_t stride, int64_t width, const int32_t* rows,
                   int64_t count, int32_t* tokens, CUstream_st* stream);

}  // namespace tinyvllm::cuda_sampler
