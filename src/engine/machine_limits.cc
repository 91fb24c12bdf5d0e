#include "engine/machine_limits.h"

#include "base/cache_folder.h"
#include "ops/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime) {
  return ops::machine_key(runtime.device(), runtime.pool());
}

std::optional<MachineLimits> cached_limits(Runtime& runtime) {
  return load_limits(cache_folder(), machine_key(runtime));
}

Result<MachineLimits> measure_limits(Runtime& runtime, const MachineLimits& at_least) {
  TRY_ASSIGN(const MachineLimits now, ops::measure_limits(runtime.device(), runtime.pool()));
  const MachineLimits limits = best_of(now, at_least);
  store_limits(cache_folder(), machine_key(runtime), limits);
  return limits;
}

MachineLimits limits_of(Runtime& runtime) {
  if (const auto cached = cached_limits(runtime)) return *cached;
  const std::scoped_lock turn(runtime.turn());
  const Result<MachineLimits> measured = measure_limits(runtime);
  return measured.ok() ? measured.value() : MachineLimits();
}

}  // namespace tinyvllm
