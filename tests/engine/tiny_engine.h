// Engines over tiny models with random weights, one for each folder of tests/data/golden: its
// config.json with a vocabulary large enough for text and a context long enough for a crowd.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <regex>
#include <string>
#include <unistd.h>
#include <vector>

#include "engine/llm_engine.h"
#include "tests/data.h"

namespace tinyvllm {

constexpr int kTinyVocabulary = 400;
constexpr int kTinyContext = 512;

inline std::string tiny_config(const std::string& name) {
  std::ifstream golden(test_data("golden/") + name + "/config.json");
  std::string config(std::istreambuf_iterator<char>(golden), {});
  const auto set = [&](const char* key, int value) {
    config = std::regex_replace(config, std::regex(std::string("\"") + key + "\": \\d+"),
                                std::string("\"") + key + "\": " + std::to_string(value));
  };
  set("vocab_size", kTinyVocabulary);
  set("max_position_embeddings", kTinyContext);
  const auto folder = std::filesystem::temp_directory_path() /
                      (std::string("tinyvllm-tiny-") + name + "-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config;
  return folder;
}

inline EngineOptions tiny_options() {
  EngineOptions options;
  options.load_format = "dummy";
  options.dtype = "F32";
  options.kv_cache_memory = size_t{4} << 20;
  return options;
}

inline std::unique_ptr<LLMEngine> load_tiny(Runtime& runtime,
                                            const EngineOptions& options = tiny_options(),
                                            const std::string& name = "llama") {
  const std::string folder = tiny_config(name);
  auto engine = LLMEngine::load(runtime, folder, options);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(engine.ok()) << engine.message();
  return engine.ok() ? std::move(engine).value() : nullptr;
}

inline std::vector<int32_t> tiny_prompt(int seed, int length) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back((seed * 7919 + i * (31 + seed)) % 300 + 3);
  return prompt;
}

inline std::vector<int32_t> token_ids(const RequestOutput& output) {
  std::vector<int32_t> ids;
  for (const SampledToken& token : output.tokens) ids.push_back(token.token);
  return ids;
}

}  // namespace tinyvllm
