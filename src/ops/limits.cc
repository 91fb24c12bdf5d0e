#include "ops/limits.h"

#include "device/cpu/cpu_device.h"
#include "ops/cpu/limits.h"
#include "ops/cuda/limits.h"

namespace tinyvllm::ops {

MachineKey machine_key(const Device& device, const ThreadPool& pool) {
  if (device.kind() == DeviceKind::kCuda) return {device.hardware(), 0, device.name()};
  return {device.hardware(), pool.size(), isa_name(static_cast<const CpuDevice&>(device).isa())};
}

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool) {
  if (device.kind() == DeviceKind::kCuda) return cuda::measure_limits(device);
  return cpu::measure_limits(device, pool);
}

Result<double> measure_cached_read(Device& device, ThreadPool& pool, size_t bytes) {
  if (device.kind() == DeviceKind::kCuda) return 0.0;
  TRY_ASSIGN(const std::vector<double> rates,
             cpu::measure_read(device, pool, bytes, {pool.size()}));
  return rates.front();
}

}  // namespace tinyvllm::ops
