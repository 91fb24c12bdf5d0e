// What a machine, or a card in it, was measured to do, all threads together: the honest
// denominators of every "percent of the limit". Measuring is the kernels' work; here the numbers
// are kept, one small file per machine, so that it happens once. A file that is missing, broken or
// cannot be written is no error: the machine is measured again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tinyvllm {

struct MachineLimits {
  double read_bytes_per_s = 0;  // best of several read loops over 1 GiB; of a card 4 GiB
  double flops_per_s = 0;       // float multiply and add, best register tile; of a card bf16
  double int8_ops_per_s = 0;    // byte products added in 16 bits; a card expands them to halves
  // Of a card; 0: not measured.
  double copy_bytes_per_s = 0;    // within its memory; each byte is read and written
  double upload_bytes_per_s = 0;  // from pinned memory of the host
};

// What the numbers hold for.
struct MachineKey {
  std::string cpu;  // "AMD EPYC 9R14 (family 25, model 17)", "NVIDIA H200"
  int threads = 0;  // 0: they do not matter
  std::string isa;

  std::string words() const;  // "AMD EPYC 9R14 (family 25, model 17), 2 threads, avx2"
};

// The better of both, number by number.
MachineLimits best_of(const MachineLimits& a, const MachineLimits& b);

std::string cpu_model();  // of this machine, as /proc/cpuinfo names it

std::optional<MachineLimits> load_limits(const std::filesystem::path& folder,
                                         const MachineKey& key);
bool store_limits(const std::filesystem::path& folder, const MachineKey& key,
                  const MachineLimits& limits);

}  // namespace tinyvllm
