// Every op at the shapes of real models, its data where the device wants them, in turn so often
// that a cache does not hold what a step would find in memory.
#pragma once

#include "apps/op_timer.h"

namespace tinyvllm {

// At so many tokens; an error is a device's that has no room.
Status time_linears(OpTimer& timer, const std::vector<int>& tokens);
Status time_mixtures(OpTimer& timer, const std::vector<int>& tokens);
Status time_attentions(OpTimer& timer);
Status time_rows(OpTimer& timer, const std::vector<int>& tokens);  // norms, embeddings, softmax

}  // namespace tinyvllm
