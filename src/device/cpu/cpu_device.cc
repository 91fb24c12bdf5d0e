#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tinyvllm {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRegionBytes = size_t{256} << 20;
constexpr size_t kAlignment = 64;

constexpr size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

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

// How fast its memory is only firmware tables say, and only to root.
DeviceSpec CpuDevice::spec() const {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  size_t size = 0;
  char unit = 0;
  file >> size >> unit;
  return {unit == 'M' ? size << 20 : size << 10, 0};
}

Result<CpuDevice::Region*> CpuDevice::region_for(size_t bytes, const std::string& what) {
  if (!regions_.empty()) {
    Region& last = regions_.back();
    if (bytes <= last.bytes - last.used) return &last;
  }
  // Room to begin on a huge page's border; what is never touched costs nothing.
  const size_t wanted = round_up(std::max(bytes, kRegionBytes), kHugePage) + kHugePage;
  void* data = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return error("out of memory: ", human_bytes(static_cast<double>(bytes)), " for ", what, ", ",
                 human_bytes(static_cast<double>(available_memory())), " available");
  }
  madvise(data, wanted, MADV_HUGEPAGE);  // a hint, may fail
  auto* begin = static_cast<char*>(data);
  const size_t skip =
      round_up(reinterpret_cast<uintptr_t>(begin), kHugePage) - reinterpret_cast<uintptr_t>(begin);
  regions_.push_back(Region{begin, wanted, skip, 0});
  return &regions_.back();
}

Result<Buffer> CpuDevice::allocate(size_t bytes, const std::string& what) {
  if (bytes == 0) return Buffer();
  const size_t size = round_up(bytes, kAlignment);
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(Region* const region, region_for(size, what));
  char* data = region->begin + region->used;
  region->used += size;
  region->pieces += 1;
  return Buffer(this, data, bytes);
}

void CpuDevice::free(void* data, size_t bytes) {
  auto* piece = static_cast<char*>(data);
  const std::lock_guard lock(mutex_);
  const auto region = std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) {
    return piece >= r.begin && piece < r.begin + r.bytes;
  });
  CHECK(region != regions_.end()) << "memory that was not allocated here";
  region->pieces -= 1;
  if (region->pieces == 0) {
    munmap(region->begin, region->bytes);
    regions_.erase(region);
    return;
  }
  // Neighbours stay; the pages that were this piece's alone go back now.
  const auto first = round_up(reinterpret_cast<uintptr_t>(piece), kPage);
  const auto last = (reinterpret_cast<uintptr_t>(piece) + bytes) / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

Status CpuDevice::upload(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Status();
}

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
