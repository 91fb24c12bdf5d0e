// How large the KV cache is made: from what was asked for, what memory is there, and what the model
// needs per token.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/kv.h"
#include "engine/engine_core.h"
#include "kv/block_manager.h"

namespace tinyvllm {

// "f16", "f32" or "int8".
Result<DType> kv_cache_dtype(const std::string& name);

struct KvSizing {
  std::vector<KvGroup> groups;
  int max_model_len = 0;
  size_t bytes = 0;
  std::string lowered;  // words for the log, where the context is less than the model's
};

// The model's context is lowered when the cache cannot hold it; a context that was asked for and
// does not fit is an error.
Result<KvSizing> size_kv_cache(const std::vector<KvSpec>& specs, int64_t context_length,
                               size_t default_budget, const EngineOptions& options);

}  // namespace tinyvllm
