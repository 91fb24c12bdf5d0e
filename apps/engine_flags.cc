#include "apps/engine_flags.h"

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/progress.h"
#include "model/convert/presets.h"

namespace tinyvllm {
namespace {

constexpr char kGroup[] = "Engine";

void add_cache_flags(CLI::App& command, EngineOptions& options) {
  command.add_option("--block-size", options.block_size, "tokens per block of the KV cache")
      ->group(kGroup)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--kv-cache-memory", options.kv_cache_memory,
                  "of the KV cache, such as 512M or 4G (default: half of what is free, up to 4G)")
      ->group(kGroup)
      ->transform(CLI::AsSizeValue(false));
  command
      .add_flag("--enable-prefix-caching,!--no-enable-prefix-caching",
                options.enable_prefix_caching, "reuse the KV of prompts that begin alike")
      ->group(kGroup)
      ->capture_default_str();
}

}  // namespace

void add_load_flags(CLI::App& command, EngineOptions& options) {
  command
      .add_option("--load-format", options.load_format,
                  "dummy: random weights; MODEL is a config.json or one of " + preset_names())
      ->group(kGroup)
      ->check(CLI::IsMember({"auto", "dummy"}))
      ->capture_default_str();
  command.add_option("--dtype", options.dtype, "type of random weights: F16, Q8_0, Q4_0, Q4_K, …")
      ->group(kGroup)
      ->capture_default_str();
  command.add_option("--kv-cache-dtype", options.kv_cache_dtype, "f16, f32 or int8")
      ->group(kGroup)
      ->check(CLI::IsMember({"f16", "f32", "int8"}))
      ->capture_default_str();
}

void add_engine_flags(CLI::App& command, EngineOptions& options) {
  command
      .add_option("-c,--max-model-len", options.max_model_len,
                  "tokens of context (default: the model's own, or what memory holds)")
      ->group(kGroup)
      ->check(CLI::PositiveNumber);
  command
      .add_option("--max-num-batched-tokens", options.max_num_batched_tokens,
                  "tokens per step, of all sequences (default: 512, 8192 on a card)")
      ->group(kGroup)
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--max-num-seqs", options.max_num_seqs, "sequences that run at a time")
      ->group(kGroup)
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  add_cache_flags(command, options);
  add_load_flags(command, options);
}

Result<std::string> resolve_model(const std::string& name, const EngineOptions& options) {
  if (options.load_format == "dummy") return name;
  return resolve_model(name);
}

Result<std::unique_ptr<LLMEngine>> load_engine(Runtime& runtime, const std::string& path,
                                               EngineOptions options) {
  ProgressBar bar("loading");
  options.load_progress = [&](std::string_view tensor, int64_t done, int64_t total) {
    bar.update(tensor, done, total);
  };
  return LLMEngine::load(runtime, path, options);
}

}  // namespace tinyvllm
