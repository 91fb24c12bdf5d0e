#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "engine/engine_core.h"
#include "model/convert/presets.h"

namespace tinyvllm {

void add_load_flags(CLI::App& command, EngineOptions& options) {
  command
      .add_option("--load-format", options.load_format,
                  "dummy: random weights; MODEL is a config.json or one of " + preset_names())
      ->check(CLI::IsMember({"auto", "dummy"}))
      ->capture_default_str();
  command.add_option("--dtype", options.dtype, "type of random weights: F16, Q8_0, Q4_0, Q4_K, …")
      ->capture_default_str();
}

Result<std::string> resolve_model(const std::string& name, const EngineOptions& options) {
  if (options.load_format == "dummy") return name;
  return resolve_model(name);
}

}  // namespace tinyvllm
