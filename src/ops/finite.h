// Whether weights are numbers at all: a NaN or an infinity in a file, as a weight or as a block's
// scale, would spread over every answer and stay in the prefix cache.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/tensor.h"
#include "base/thread_pool.h"
#include "device/device.h"

namespace tinyvllm::ops {

// The first row that holds a number which is not finite, if any does.
std::optional<int64_t> find_not_finite(ThreadPool& pool, const TensorView& view);

// The same before weights are given to a device. A card looks at matrices itself, once it has them:
// the host has no second look at every byte to spare, when the bus is to be kept busy.
std::optional<int64_t> find_not_finite(const Device& device, ThreadPool& pool,
                                       const TensorView& view);
// What was found there since the last call, when everything uploaded has arrived: where in the
// host's memory such a row begins, the lowest one; null when there is none.
Result<const void*> first_not_finite(Device& device);

}  // namespace tinyvllm::ops
