// The CPU as a device: memory from the kernel, kernels chosen by instruction set.
#pragma once

#include <vector>

#include "device/device.h"

namespace tinyvllm {

// Instruction sets that kernels are compiled for, weakest first.
enum class Isa { kBaseline, kAvx2 };
const char* isa_name(Isa isa);
std::vector<Isa> built_isas();      // that this build has kernels for
std::vector<Isa> supported_isas();  // by this machine, of those

class CpuDevice final : public Device {
 public:
  // The best instruction set of this machine, or the one TINYVLLM_ISA names.
  static Result<std::unique_ptr<CpuDevice>> create();
  explicit CpuDevice(Isa isa) : isa_(isa) {}

  Isa isa() const { return isa_; }
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override { return std::string("cpu-") + isa_name(isa_); }
  Result<Buffer> allocate(size_t bytes, const std::string& what) override;
  void free(void* data, size_t bytes) override;
  size_t available_memory() const override;
  DType activation_dtype() const override { return DType::kF32; }

 private:
  const Isa isa_;
};

}  // namespace tinyvllm
