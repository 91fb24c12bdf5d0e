// How an engine is set up, and what it says of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tinyvllm {

// Called while weights are loaded: the tensor at hand, if any, and bytes done of all.
using LoadProgress = std::function<void(std::string_view tensor, int64_t done, int64_t total)>;

struct EngineOptions {
  // "dummy": random weights in the shapes that a preset or a config.json gives, of type `dtype`.
  std::string load_format = "auto";
  std::string dtype = "F16";
  int max_model_len = 0;  // 0: the context the model was trained for, or what memory allows
  int max_num_batched_tokens = 0;  // a step's; 0: what suits the device (512, 8192 on a card)
  int max_num_seqs = 256;
  int block_size = 16;
  size_t kv_cache_memory = 0;          // bytes; 0: from the memory that is available
  std::string kv_cache_dtype = "f16";  // or f32, or int8
  bool enable_prefix_caching = true;
  int depth = -1;  // steps submitted ahead, 0 or 1; -1: what suits the device
  LoadProgress load_progress = nullptr;
};

// Where an engine computes.
struct DeviceOptions {
  std::string device;  // "cpu" or "cuda"; empty: what the environment's DEVICE says, or else cpu
  int threads = 0;     // 0: the physical cores
  // Of a card:
  bool deterministic = false;           // the same bytes whatever else runs, as a CPU always has it
  double gpu_memory_utilization = 0.9;  // of its memory, what may be used
};

struct PrefixStats {
  uint64_t queried_tokens = 0;
  uint64_t hit_tokens = 0;
};

struct EngineStats {
  int running = 0;
  int waiting = 0;
  int used_blocks = 0;
  int touched_blocks = 0;  // that were used at some time; the rest of the cache was never written
  int total_blocks = 0;
  uint64_t preemptions = 0;
  uint64_t steps = 0;
  PrefixStats prefix;
};

}  // namespace tinyvllm
