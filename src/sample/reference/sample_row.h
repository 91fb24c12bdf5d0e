// One row's choice, as its formula reads. Greedy takes the largest logit, the lowest id among
// equals; otherwise softmax(logits / temperature) is walked in ascending id until it passes a
// uniform number.
#pragma once

#include <cstdint>

#include "sample/sampler.h"

namespace tinyvllm::reference {

SampleOutput sample_row(const float* logits, int64_t vocabulary, const SampleRow& row);

}  // namespace tinyvllm::reference
