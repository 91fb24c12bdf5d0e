// Where the tests' files lie: in the tree that they were built from, or, for binaries that were
// built elsewhere, in the folder that TINYVLLM_TEST_DATA names.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace tinyvllm {

inline std::string test_data(const std::string& name) {
  const char* folder = std::getenv("TINYVLLM_TEST_DATA");
  return std::string(folder != nullptr ? folder : TEST_DATA) + "/" + name;
}

// Tiny models of every architecture and its variants: tests/data/golden has a folder for each.
inline const std::vector<std::string> kGoldenModels = {
    "gemma3",       "gemma3_deep", "llama",    "llama_bias",    "llama_linear",
    "llama_llama3", "mistral",     "olmo2",    "phi3",          "qwen2",
    "qwen2_yarn",   "qwen3",       "qwen3moe", "qwen3moe_plain"};

}  // namespace tinyvllm
