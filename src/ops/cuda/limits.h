// Measures what a card can do, in under a second, by the card's own clock: reading, copying, taking
// in what the host sends, and multiplying.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "telemetry/limits.h"

namespace tinyvllm::ops::cuda {

// Takes 4 GiB of the card's memory for the while, 1 GiB where there is not more.
Result<MachineLimits> measure_limits(Device& device);

}  // namespace tinyvllm::ops::cuda
