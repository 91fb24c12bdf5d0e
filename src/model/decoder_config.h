// The sizes that every decoder has, read from GGUF metadata or config.json and checked against each
// other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "model/config_reader.h"
#include "model/model.h"
#include "model/registry.h"
#include "model/rope_config.h"

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
  RopeConfig rope;
  float attention_scale = 1;  // 1/sqrt(head_dim) unless the model says otherwise
  bool tied_head = false;     // the embedding is the head too, where the files have no other

  int64_t q_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
};

Result<DecoderConfig> read_decoder_config(const ConfigReader& reader, const ModelFiles& files);

// One group of layers that cache alike.
KvSpec kv_group(const DecoderConfig& config, int64_t layers, int64_t window,
                const ModelOptions& options);

// What the engine wants to know, for a model whose layers all cache alike.
ModelInfo decoder_info(const DecoderConfig& config, const std::string& architecture,
                       size_t bytes_per_token, std::vector<KvSpec> groups);

}  // namespace tinyvllm
