#include "engine/machine_limits.h"

#include <algorithm>

#include "base/cache_folder.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime) {
  if (runtime.device().kind() != DeviceKind::kCpu) {
    return {runtime.device().name(), runtime.pool().size(), "cuda"};
  }
  return {cpu_model(), runtime.pool().size(),
          isa_name(static_cast<CpuDevice&>(runtime.device()).isa())};
}

std::optional<MachineLimits> cached_limits(Runtime& runtime) {
  return load_limits(cache_folder(), machine_key(runtime));
}

Result<MachineLimits> measure_limits(Runtime& runtime, const MachineLimits& at_least) {
  if (runtime.device().kind() != DeviceKind::kCpu) {
    return error("limits of ", runtime.device().name(), ": nothing here measures them");
  }
  TRY_ASSIGN(MachineLimits limits, ops::cpu::measure_limits(runtime.device(), runtime.pool()));
  limits.read_bytes_per_s = std::max(limits.read_bytes_per_s, at_least.read_bytes_per_s);
  limits.flops_per_s = std::max(limits.flops_per_s, at_least.flops_per_s);
  limits.int8_ops_per_s = std::max(limits.int8_ops_per_s, at_least.int8_ops_per_s);
  store_limits(cache_folder(), machine_key(runtime), limits);
  return limits;
}

MachineLimits limits_of(Runtime& runtime) {
  if (runtime.device().kind() != DeviceKind::kCpu) return {};  // nobody measures those yet
  if (const auto cached = cached_limits(runtime)) return *cached;
  const std::scoped_lock turn(runtime.turn());
  const Result<MachineLimits> measured = measure_limits(runtime);
  return measured.ok() ? measured.value() : MachineLimits();
}

}  // namespace tinyvllm
