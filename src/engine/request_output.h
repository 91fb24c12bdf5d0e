// Outputs of one answer (tinyvllm/outputs.h), joined.
#pragma once

#include "tinyvllm/outputs.h"

namespace tinyvllm {

// Adds an answer's newer output to what it brought before.
void append(RequestOutput& answer, RequestOutput&& news);

}  // namespace tinyvllm
