#include "apps/device_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

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
      .add_flag("--deterministic", flags.cuda.deterministic,
                "cuda: the same bytes whatever else runs, at a price in speed (cpu: always so)")
      ->group(kGroup);
  command
      .add_option("--gpu-memory-utilization", flags.cuda.memory_utilization,
                  "cuda: how much of the card's memory may be used")
      ->group(kGroup)
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str();
}

Result<RuntimeOptions> runtime_options(const DeviceFlags& flags) {
  std::string device = flags.device;
  if (device.empty()) {
    const char* variable = std::getenv("DEVICE");
    device = variable == nullptr || *variable == '\0' ? "cpu" : variable;
    for (char& c : device) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (device != "cpu" && device != "cuda") {
      return error("DEVICE: expected cpu or cuda, found '", printable(device), "'");
    }
  }
  RuntimeOptions options{flags.threads, DeviceKind::kCpu, flags.cuda};
  if (device == "cuda") options.device = DeviceKind::kCuda;
  return options;
}

Result<std::unique_ptr<Runtime>> create_runtime(const DeviceFlags& flags) {
  TRY_ASSIGN(const RuntimeOptions options, runtime_options(flags));
  return Runtime::create(options);
}

}  // namespace tinyvllm
