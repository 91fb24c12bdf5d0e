#include "device/runtime.h"

#include <cctype>
#include <cstdlib>

#include "device/cpu/cpu_device.h"
#include "telemetry/live_lines.h"

namespace tinyvllm {
namespace {

Result<DeviceKind> device_kind(const std::string& name, const char* whose) {
  if (name == "cpu") return DeviceKind::kCpu;
  if (name == "cuda") return DeviceKind::kCuda;
  return error(whose, ": expected cpu or cuda, found '", printable(name), "'");
}

Result<DeviceKind> device_of_environment() {
  const char* const variable = std::getenv("DEVICE");
  std::string name = variable == nullptr || *variable == '\0' ? "cpu" : variable;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return device_kind(name, "DEVICE");
}

}  // namespace

Result<RuntimeOptions> runtime_options(const DeviceOptions& chosen) {
  const double utilization = chosen.gpu_memory_utilization;
  if (!(utilization > 0 && utilization <= 1)) {
    return error("gpu_memory_utilization: expected a share of more than 0 and at most 1, found ",
                 utilization);
  }
  RuntimeOptions options;
  options.threads = chosen.threads;
  TRY_ASSIGN(options.device, chosen.device.empty() ? device_of_environment()
                                                   : device_kind(chosen.device, "device"));
  options.cuda.deterministic = chosen.deterministic;
  options.cuda.memory_utilization = utilization;
  return options;
}

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  if (options.threads < 0) {
    return error("threads: expected at least 1 (or 0 for all cores), found ", options.threads);
  }
  const int threads = options.threads == 0 ? default_thread_count() : options.threads;
  std::unique_ptr<Runtime> runtime(new Runtime(threads));
  std::unique_ptr<Device> device;
  if (options.device == DeviceKind::kCuda) {
    TRY_ASSIGN(device, CudaDevice::create(options.cuda));
  } else {
    TRY_ASSIGN(device, CpuDevice::create());
  }
  runtime->memory_budget_ = device->available_memory();
  runtime->devices_.push_back(std::move(device));
  if (const auto lines = LiveLines::from_environment()) runtime->tracer_.attach(lines);
  return runtime;
}

Status Runtime::lease(size_t bytes, const std::string& what) {
  const std::scoped_lock lock(lease_mutex_);
  if (bytes > memory_budget_ - leased_) {
    return error(what, " needs ", human_bytes(static_cast<double>(bytes)), ", but only ",
                 human_bytes(static_cast<double>(memory_budget_ - leased_)), " of ",
                 human_bytes(static_cast<double>(memory_budget_)), " are free");
  }
  leased_ += bytes;
  return Status();
}

void Runtime::give_back(size_t bytes) {
  const std::scoped_lock lock(lease_mutex_);
  leased_ -= bytes;
}

}  // namespace tinyvllm
