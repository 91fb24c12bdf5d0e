#include "apps/device_flags.h"

#include <CLI/CLI.hpp>

namespace tinyvllm {
namespace {

constexpr char kGroup[] = "Device";

}  // namespace

void add_device_flags(CLI::App& command, DeviceFlags& flags) {
  command.add_option("-t,--threads", flags.threads, "default: the physical cores")
      ->group(kGroup)
      ->check(CLI::Range(0, 4096));
  command.add_option("--device", flags.device, "cpu or cuda (default: $DEVICE, or else cpu)")
      ->group(kGroup)
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_flag("--deterministic", flags.deterministic,
                "cuda: the same bytes whatever else runs, at a price in speed (cpu: always so)")
      ->group(kGroup);
  command
      .add_option("--gpu-memory-utilization", flags.gpu_memory_utilization,
                  "cuda: how much of the card's memory may be used")
      ->group(kGroup)
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str();
}

Result<std::unique_ptr<Runtime>> create_runtime(const DeviceFlags& flags) {
  TRY_ASSIGN(const RuntimeOptions options, runtime_options(flags));
  return Runtime::create(options);
}

}  // namespace tinyvllm
