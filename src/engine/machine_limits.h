// The limits of the device in use, from the user's cache folder or measured there and then.
#pragma once

#include <optional>

#include "base/result.h"
#include "device/runtime.h"
#include "telemetry/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime);

std::optional<MachineLimits> cached_limits(Runtime& runtime);

// Takes about 0.9 s, all of the device and 1 GiB of its memory (4 of a card's), and leaves it in
// the cache. What was measured is never put below `at_least`: on a busy machine an earlier
// measurement may have been the better one.
Result<MachineLimits> measure_limits(Runtime& runtime, const MachineLimits& at_least = {});

// Those of the cache, or measured now that nobody computes; zeros when neither works.
MachineLimits limits_of(Runtime& runtime);

}  // namespace tinyvllm
