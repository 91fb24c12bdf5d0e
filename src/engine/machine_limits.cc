#include "engine/machine_limits.h"

#include "base/cache_folder.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/limits.h"

namespace tinyvllm {

MachineKey machine_key(Runtime& runtime) {
  return {cpu_model(), runtime.pool().size(),
          isa_name(static_cast<CpuDevice&>(runtime.device()).isa())};
}

std::optional<MachineLimits> cached_limits(Runtime& runtime) {
  return load_limits(cache_folder(), machine_key(runtime));
}

Result<MachineLimits> measure_limits(Runtime& runtime) {
  TRY_ASSIGN(const MachineLimits limits,
             ops::cpu::measure_limits(runtime.device(), runtime.pool()));
  store_limits(cache_folder(), machine_key(runtime), limits);
  return limits;
}

}  // namespace tinyvllm
