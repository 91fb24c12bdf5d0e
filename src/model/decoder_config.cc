#include "model/decoder_config.h"

#include <algorithm>
#include <cmath>

namespace tinyvllm {
namespace {

// GGUF files need not store the vocabulary's size: the embedding has one row per token.
Result<int64_t> vocabulary(const ConfigReader& reader, const ModelFiles& files) {
  const ConfigReader::Field field{"vocab_size", "vocab_size"};
  if (!reader.is_gguf() || reader.has(field)) return reader.size(field);
  const WeightTensor* table = files.weights().find("token_embd.weight");
  if (table == nullptr) return error("tensor 'token_embd.weight' is missing");
  if (table->view.shape.rank != 2) {
    return error("tensor 'token_embd.weight': expected [vocabulary, hidden], found ",
                 to_string(table->view.shape));
  }
  return table->view.shape[0];
}

// GGUF stores how many elements of a head rotate, config.json which part of the head they are.
Result<int64_t> rotary_dim(const ConfigReader& reader, int64_t head_dim) {
  int64_t dim = head_dim;
  if (reader.is_gguf()) {
    TRY_ASSIGN(dim, reader.size({"rope.dimension_count", ""}, head_dim));
  } else {
    const char* key = reader.metadata().has("rope_parameters.partial_rotary_factor")
                          ? "rope_parameters.partial_rotary_factor"
                          : "partial_rotary_factor";
    TRY_ASSIGN(const double part, reader.positive({"", key}, 1));
    dim = static_cast<int64_t>(std::min(part, 2.0) * static_cast<double>(head_dim));
  }
  if (dim % 2 != 0 || dim < 2 || dim > head_dim) {
    return error("rotary dimension: expected an even number up to the head size ", head_dim,
                 ", found ", dim);
  }
  return dim;
}

Result<int64_t> head_size(const ConfigReader& reader, const DecoderConfig& c) {
  const ConfigReader::Field field{"attention.key_length", "head_dim"};
  if (!reader.has(field) && c.hidden % c.heads != 0) {
    return error(reader.key({"attention.head_count", "num_attention_heads"}), ": ", c.heads,
                 " does not divide the hidden size ", c.hidden);
  }
  return reader.size(field, std::max<int64_t>(1, c.hidden / c.heads));
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const ConfigReader& reader, const ModelFiles& files) {
  DecoderConfig c;
  const ConfigReader::Field heads{"attention.head_count", "num_attention_heads"};
  const ConfigReader::Field kv_heads{"attention.head_count_kv", "num_key_value_heads"};
  const ConfigReader::Field epsilon{"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  TRY_ASSIGN(c.layers, reader.size({"block_count", "num_hidden_layers"}));
  TRY_ASSIGN(c.hidden, reader.size({"embedding_length", "hidden_size"}));
  TRY_ASSIGN(c.heads, reader.size(heads));
  TRY_ASSIGN(c.kv_heads, reader.size(kv_heads, c.heads));
  TRY_ASSIGN(c.ffn, reader.size({"feed_forward_length", "intermediate_size"}));
  TRY_ASSIGN(c.context_length, reader.size({"context_length", "max_position_embeddings"}));
  TRY_ASSIGN(c.vocab_size, vocabulary(reader, files));
  if (c.heads % c.kv_heads != 0) {
    return error(reader.key(heads), ": ", c.heads, " is not a multiple of ", reader.key(kv_heads),
                 ", which is ", c.kv_heads);
  }
  TRY_ASSIGN(c.head_dim, head_size(reader, c));
  TRY_ASSIGN(c.rotary_dim, rotary_dim(reader, c.head_dim));
  TRY_ASSIGN(c.rope, read_rope_config(reader, c.context_length));
  if (c.rope.scaling == RopeConfig::Scaling::kYarn) {  // files name one length or the other
    const double stretched = static_cast<double>(c.rope.original_length) * c.rope.factor;
    c.context_length = std::max(c.context_length, static_cast<int64_t>(std::min(stretched, 1e9)));
  }
  TRY_ASSIGN(const double eps, reader.positive(epsilon, 1e-5));
  c.norm_eps = static_cast<float>(eps);
  c.attention_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  TRY_ASSIGN(const bool tied, reader.flag({"", "tie_word_embeddings"}, false));
  c.tied_head = reader.is_gguf() || tied;
  return c;
}

KvSpec kv_group(const DecoderConfig& c, int64_t layers, int64_t window,
                const ModelOptions& options) {
  KvSpec group;
  group.layers = static_cast<int>(layers);
  group.kv_heads = static_cast<int>(c.kv_heads);
  group.k_dim = static_cast<int>(c.head_dim);
  group.v_dim = static_cast<int>(c.head_dim);
  group.dtype = options.kv_dtype;
  group.window = static_cast<int>(window);
  return group;
}

ModelInfo decoder_info(const DecoderConfig& c, const std::string& architecture,
                       size_t bytes_per_token, std::vector<KvSpec> groups) {
  return ModelInfo{architecture,     c.layers,          c.hidden,       c.vocab_size,
                   c.context_length, std::move(groups), bytes_per_token};
}

}  // namespace tinyvllm
