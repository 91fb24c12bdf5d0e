// The CPU as a device: memory from the kernel, kernels chosen by instruction set.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "telemetry/limits.h"

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
  std::string hardware() const override { return cpu_model(); }
  DeviceSpec spec() const override;
  Result<Buffer> allocate(size_t bytes, const std::string& what) override;
  void free(void* data, size_t bytes) override;
  size_t available_memory() const override;
  DType activation_dtype() const override { return DType::kF32; }
  bool host_reads() const override { return true; }
  Status upload(void* to, const void* from, size_t bytes) override;
  Status download(void* to, const void* from, size_t bytes) override {
    return upload(to, from, bytes);
  }
  Result<const void*> stage(const void* host, size_t /*bytes*/) override { return host; }
  int steps_ahead() const override { return 0; }
  int step_tokens() const override { return 512; }
  // Without a word from the user half of what is free, and no more than 4 GiB: a machine that
  // people work on is not the engine's alone. Memory is only touched as it is used.
  size_t cache_budget(size_t /*activations*/) const override {
    return std::min(available_memory() / 2, size_t{4} << 30);
  }

 private:
  // Memory comes from large regions, cut off piece by piece, so that weights lie on huge pages
  // however small a tensor is: streamed from 4 KiB pages of their own they read at half the speed
  // (19 against 37 GB/s on a Zen 4 core). A region goes when its last piece does.
  struct Region {
    char* begin;
    size_t bytes;
    size_t used;
    size_t pieces;
  };
  Result<Region*> region_for(size_t bytes, const std::string& what);

  const Isa isa_;
  std::mutex mutex_;
  std::vector<Region> regions_;  // the last one is being cut
};

}  // namespace tinyvllm
