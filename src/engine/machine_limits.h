// This machine's limits, from the user's cache folder or measured there and then.
#pragma once

#include <optional>

#include "base/result.h"
#include "device/runtime.h"
#include "telemetry/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime);

std::optional<MachineLimits> cached_limits(Runtime& runtime);

// Takes about 0.8 s, uses the runtime's threads and 1 GiB of memory, and leaves the result in the
// cache.
Result<MachineLimits> measure_limits(Runtime& runtime);

}  // namespace tinyvllm
