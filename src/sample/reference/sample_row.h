// One row's choice, as sampler.h tells it: the whole vocabulary sorted, filters cutting the list.
#pragma once

#include <cstdint>

#include "sample/sampler.h"

namespace tinyvllm::reference {

SampleOutput sample_row(const float* logits, int64_t vocabulary, const SampleRow& row);
SampleOutput score_row(const float* logits, int64_t vocabulary, const ScoreRow& row);

}  // namespace tinyvllm::reference
