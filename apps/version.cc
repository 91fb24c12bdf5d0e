#include "version.h"

#include "apps/command.h"
#include "device/cpu/cpu_device.h"

namespace tinyvllm {

std::string version_text() {
#if defined(__clang__)
  const std::string compiler = str_cat("clang ", __clang_major__, ".", __clang_minor__);
#else
  const std::string compiler = str_cat("g++ ", __GNUC__, ".", __GNUC_MINOR__);
#endif
  std::string built;
  for (const Isa isa : built_isas()) built += str_cat(built.empty() ? "" : ", ", isa_name(isa));
  const auto device = CpuDevice::create();
  return str_cat("tinyvllm ", TINYVLLM_VERSION, " (", TINYVLLM_COMMIT, "), ", compiler,
                 "\nCPU paths built: ", built, "\nthis machine uses: ",
                 device.ok() ? isa_name(device.value()->isa()) : device.message());
}

}  // namespace tinyvllm
