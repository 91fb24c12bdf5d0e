#include "model/convert/presets.h"

#include <utility>

namespace tinyvllm {
namespace {

constexpr std::pair<std::string_view, std::string_view> kPresets[] = {
    // Nobody's model: as small as every weight type allows.
    {"tiny", R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 512, "hidden_size": 256,
        "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": false})"},
    {"smollm2-135m",
     R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 49152, "hidden_size": 576,
        "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0, "tie_word_embeddings": true})"},
    {"tinyllama-1.1b",
     R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 32000, "hidden_size": 2048,
        "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
        "num_key_value_heads": 4, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": false})"},
    {"llama3.2-1b",
     R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3",
        "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}, "tie_word_embeddings": true})"},
    {"qwen2.5-0.5b",
     R"({"architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936, "hidden_size": 896,
        "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
    {"qwen3-0.6b",
     R"({"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 1024,
        "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
};

}  // namespace

std::optional<std::string_view> preset_config(std::string_view name) {
  for (const auto& [preset, config] : kPresets) {
    if (name == preset) return config;
  }
  return std::nullopt;
}

std::string preset_names() {
  std::string names;
  for (const auto& [preset, config] : kPresets) {
    if (!names.empty()) names += ", ";
    names += preset;
  }
  return names;
}

}  // namespace tinyvllm
