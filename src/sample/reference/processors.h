// Steps 2 to 7 of sampler.h, as they read: what a request forbids, wishes and penalises.
#pragma once

#include <span>

#include "sample/sampler.h"

namespace tinyvllm::reference {

void process_logits(const SampleRow& row, std::span<float> logits);

}  // namespace tinyvllm::reference
