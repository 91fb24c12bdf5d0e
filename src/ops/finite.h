// Whether weights are numbers at all: a NaN or an infinity in a file, as a weight or as a block's
// scale, would spread over every answer and stay in the prefix cache.
#pragma once

#include <optional>

#include "base/tensor.h"
#include "base/thread_pool.h"

namespace tinyvllm::ops {

// The first row that holds a number which is not finite, if any does.
std::optional<int64_t> find_not_finite(ThreadPool& pool, const TensorView& view);

}  // namespace tinyvllm::ops
