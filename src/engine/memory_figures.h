// What an engine's memory is made of, for traces.
#pragma once

#include <cstdint>
#include <string>

namespace tinyvllm {

struct MemoryFigures {
  uint64_t weight_bytes = 0;  // in the files
  uint64_t kv_bytes = 0;      // of the cache
  uint64_t activation_bytes = 0;
  uint64_t kv_token_bytes = 0;  // of one token in all layers
};

// The data of a HostMemory record: these, and what the process has in memory now and had at most.
std::string host_memory(const MemoryFigures& figures, uint64_t kv_used_bytes);

}  // namespace tinyvllm
