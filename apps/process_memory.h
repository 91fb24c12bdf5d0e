// What this process has in memory, as the kernel counts it.
#pragma once

namespace tinyvllm {

struct ProcessMemory {
  double resident = 0;  // bytes: of its own and of files that it has mapped and looked at
  double anonymous = 0;
  double files = 0;
  double peak = 0;  // of `resident`, so far
};

ProcessMemory process_memory();

}  // namespace tinyvllm
