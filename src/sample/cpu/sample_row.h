// One row's choice on the CPU, the same to the bit as reference/sample_row.h, in a few passes over
// the row: its blocks' maxima always, its total weight only when a choice or a logprob needs it.
#pragma once

#include "sample/cpu/kernels.h"
#include "sample/cpu/scratch.h"
#include "sample/sampler.h"

namespace tinyvllm::cpu_sampler {

SampleOutput sample_row(const Kernels& kernels, const float* logits, const SampleRow& row,
                        Scratch& scratch);
SampleOutput score_row(const Kernels& kernels, const float* logits, const ScoreRow& row,
                       Scratch& scratch);

}  // namespace tinyvllm::cpu_sampler
