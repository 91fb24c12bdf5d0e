// This machine's limits, from the user's cache folder or measured there and then.
#pragma once

#include <optional>

#include "base/result.h"
#include "device/runtime.h"
#include "telemetry/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime);

std::optional<MachineLimits> cached_limits(Runtime& runtime);

// Takes about 0.9 s, uses the runtime's threads and 1 GiB of memory, and leaves the result in the
// cache. What was measured is never put below `at_least`: on a busy machine an earlier measurement
// may have been the better one.
Result<MachineLimits> measure_limits(Runtime& runtime, const MachineLimits& at_least = {});

// Those of the cache, or measured now that nobody computes; zeros when neither works.
MachineLimits limits_of(Runtime& runtime);

}  // namespace tinyvllm
