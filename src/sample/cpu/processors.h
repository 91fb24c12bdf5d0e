// Steps 2 to 7 of sampler.h on a row that copies what it changes. A history is walked once per
// token chosen, with a bit for each token of the vocabulary at hand: about a nanosecond a token.
#pragma once

#include "sample/cpu/row.h"
#include "sample/sampler.h"

namespace tinyvllm::cpu_sampler {

// Whether any of the steps can change this row.
bool changes_logits(const SampleRow& row);

void process_logits(const SampleRow& row, Row& logits, Scratch& scratch);

}  // namespace tinyvllm::cpu_sampler
