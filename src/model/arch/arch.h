// The loaders that arch/*.cc define, for the registry alone.
#pragma once

#include "model/registry.h"

namespace tinyvllm {

Architecture::Loader load_gemma3, load_llama, load_olmo2, load_phi3, load_qwen2, load_qwen3,
    load_qwen3moe;

}  // namespace tinyvllm
