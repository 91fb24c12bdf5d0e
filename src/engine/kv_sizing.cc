#include "engine/kv_sizing.h"

#include <algorithm>

#include "ops/attention.h"

namespace tinyvllm {
namespace {

int64_t blocks_for(int64_t tokens, int block_size) {
  return (tokens + block_size - 1) / block_size;
}

// Blocks that one sequence of `tokens` tokens can have in use at once.
int64_t blocks_of_sequence(const KvSpec& spec, int64_t tokens, const EngineOptions& options) {
  if (spec.window == 0) return blocks_for(tokens, options.block_size);
  const int64_t live = spec.window + int64_t{options.max_num_batched_tokens} * (1 + options.depth);
  return std::min(blocks_for(tokens, options.block_size), blocks_for(live, options.block_size) + 2);
}

Error too_small(size_t budget, int64_t tokens, size_t needed, const EngineOptions& options) {
  const std::string found = human_bytes(static_cast<double>(budget));
  const std::string takes = human_bytes(static_cast<double>(needed));
  if (options.kv_cache_memory != 0) {
    return error("kv_cache_memory: ", found, " hold not even ", tokens, " tokens, which take ",
                 takes);
  }
  return error("out of memory: weights and activations leave ", found, " for the KV cache, and ",
               tokens, " tokens take ", takes,
               "; a smaller model, fewer --max-num-batched-tokens or, on a card, a larger "
               "--gpu-memory-utilization would help");
}

}  // namespace

Result<DType> kv_cache_dtype(const std::string& name) {
  if (name == "f16") return DType::kF16;
  if (name == "f32") return DType::kF32;
  if (name == "int8") return DType::kI8;
  return error("kv_cache_dtype: expected f16, f32 or int8, found '", printable(name), "'");
}

Result<KvSizing> size_kv_cache(const std::vector<KvSpec>& specs, int64_t context_length,
                               size_t default_budget, const EngineOptions& options) {
  const int64_t wanted = options.max_model_len == 0 ? context_length : options.max_model_len;
  if (wanted < 2 || wanted > context_length) {
    return error("max_model_len: expected 2 to ", context_length, " (the model's context), found ",
                 wanted);
  }
  const size_t budget = options.kv_cache_memory != 0 ? options.kv_cache_memory : default_budget;
  // Sequences of full length, one after the other, until the budget or their number is reached.
  const auto bytes_for = [&](int64_t tokens, int64_t sequences) {
    size_t bytes = 0;
    for (const KvSpec& spec : specs) {
      const auto blocks =
          static_cast<size_t>(1 + sequences * blocks_of_sequence(spec, tokens, options));
      bytes += blocks * ops::kv_block_bytes(spec, options.block_size);
    }
    return bytes;
  };
  int64_t length = wanted;
  while (length > options.block_size && bytes_for(length, 1) > budget) length -= options.block_size;
  if (bytes_for(length, 1) > budget) {
    return too_small(budget, length, bytes_for(length, 1), options);
  }
  KvSizing sizing;
  if (length < wanted) {
    const std::string fits =
        str_cat("the KV cache of ", human_bytes(static_cast<double>(budget)), " holds ", length,
                " tokens; the context of ", wanted, " would take ",
                human_bytes(static_cast<double>(bytes_for(wanted, 1))));
    if (options.max_model_len != 0) return error("max_model_len: ", fits);
    sizing.lowered = str_cat(fits, ", so the context is ", length);
  }

  int64_t sequences = 1;
  while (sequences < options.max_num_seqs && bytes_for(length, sequences + 1) <= budget)
    sequences += 1;
  sizing.max_model_len = static_cast<int>(length);
  for (const KvSpec& spec : specs) {
    const int64_t blocks = 1 + sequences * blocks_of_sequence(spec, length, options);
    sizing.groups.push_back({static_cast<int>(blocks), spec.window});
  }
  sizing.bytes = bytes_for(length, sequences);
  return sizing;
}

}  // namespace tinyvllm
