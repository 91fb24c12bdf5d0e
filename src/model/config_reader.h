// The sizes that every decoder has, read from GGUF metadata or config.json under either's names and
// checked against each other. What only one architecture has, that architecture reads itself.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/model_files.h"
#include "model/model.h"

namespace tinyvllm {

struct DecoderConfig {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
  int64_t ffn = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;
  float norm_eps = 1e-5f;
  double rope_base = 10000;
  float attention_scale = 1;  // 1/sqrt(head_dim) unless the model says otherwise
};

Result<DecoderConfig> read_decoder_config(const ModelFiles& files);

// What the engine wants to know, for a model whose layers all cache alike.
ModelInfo decoder_info(const DecoderConfig& config, const std::string& architecture,
                       size_t bytes_per_token);

}  // namespace tinyvllm
