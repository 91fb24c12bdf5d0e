#include "device/cpu/cpu_device.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tinyvllm {
namespace {

#if defined(__x86_64__)
constexpr Isa kIsas[] = {Isa::kBaseline, Isa::kAvx2};
#else
constexpr Isa kIsas[] = {Isa::kBaseline};
#endif

#if defined(__x86_64__)
// A feature that __builtin_cpu_supports of our oldest compiler has no name for.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

bool machine_has(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  }
#endif
  return isa == Isa::kBaseline;
}

}  // namespace

const char* isa_name(Isa isa) { return isa == Isa::kAvx2 ? "avx2" : "baseline"; }

std::vector<Isa> built_isas() { return {std::begin(kIsas), std::end(kIsas)}; }

std::vector<Isa> supported_isas() {
  std::vector<Isa> supported;
  for (const Isa isa : kIsas) {
    if (machine_has(isa)) supported.push_back(isa);
  }
  return supported;
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create() {
  const std::vector<Isa> supported = supported_isas();
  const char* wanted = std::getenv("TINYVLLM_ISA");
  if (wanted == nullptr || *wanted == '\0') return std::make_unique<CpuDevice>(supported.back());
  std::string names;
  for (const Isa isa : supported) {
    if (std::string(wanted) == isa_name(isa)) return std::make_unique<CpuDevice>(isa);
    names += str_cat(names.empty() ? "" : ", ", isa_name(isa));
  }
  return error("TINYVLLM_ISA: '", printable(wanted),
               "' is not one of those this machine has: ", names);
}

Result<Buffer> CpuDevice::allocate(size_t bytes, const std::string& what) {
  if (bytes == 0) return Buffer();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return error("out of memory: ", human_bytes(static_cast<double>(bytes)), " for ", what, ", ",
                 human_bytes(static_cast<double>(available_memory())), " available");
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // fewer TLB misses on streamed weights; a hint, may fail
  return Buffer(this, data, bytes);
}

void CpuDevice::free(void* data, size_t bytes) { munmap(data, bytes); }

size_t CpuDevice::available_memory() const {
  size_t kilobytes = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %zu kB", &kilobytes) == 1) break;
    }
    std::fclose(file);
  }
  return kilobytes * 1024;
}

}  // namespace tinyvllm
