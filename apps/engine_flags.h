// The flags of every command that runs a model: how it is loaded, its context and its KV cache.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/llm_engine.h"

namespace CLI {
class App;
}

namespace tinyvllm {

// --load-format, --dtype and --kv-cache-dtype. Names of presets are no files: a model whose weights
// are made up stays as the user wrote it.
void add_load_flags(CLI::App& command, EngineOptions& options);
Result<std::string> resolve_model(const std::string& name, const EngineOptions& options);

// --max-model-len, --block-size, … and those above.
void add_engine_flags(CLI::App& command, EngineOptions& options);

// The engine, with a progress bar on a terminal while it loads.
Result<std::unique_ptr<LLMEngine>> load_engine(Runtime& runtime, const std::string& path,
                                               EngineOptions options);

}  // namespace tinyvllm
