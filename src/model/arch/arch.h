// The loaders that arch/*.cc define, for the registry alone.
#pragma once

#include "model/registry.h"

namespace tinyvllm {

Result<std::unique_ptr<Model>> load_llama(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions& options);

}  // namespace tinyvllm
