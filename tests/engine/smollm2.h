// Where `tools/get_model smollm2` puts the model that tests run.
#pragma once

#include <cstdlib>
#include <string>

namespace tinyvllm {

inline std::string smollm2_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string base =
      cache != nullptr ? cache : std::string(home != nullptr ? home : ".") + "/.cache";
  return base + "/tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

}  // namespace tinyvllm
