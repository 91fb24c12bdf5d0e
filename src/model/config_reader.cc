#include "model/config_reader.h"

#include <cmath>

namespace tinyvllm {
namespace {

// Larger than any model and small enough that products of two stay far from overflow.
constexpr int64_t kMaxSize = int64_t{1} << 30;

struct Field {
  const char* gguf;  // after the architecture's prefix
  const char* hf;
};

class Reader {
 public:
  explicit Reader(const ModelFiles& files) : files_(files) {
    if (files.format() != ModelFormat::kGguf) return;
    if (const auto name = files.metadata().string("general.architecture"); name.ok()) {
      prefix_ = std::string(name.value()) + ".";
    }
  }

  std::string key(const Field& field) const {
    return files_.format() == ModelFormat::kGguf ? prefix_ + field.gguf : field.hf;
  }
  bool has(const Field& field) const { return files_.metadata().has(key(field)); }

  Result<int64_t> size(const Field& field, int64_t fallback = 0) const {
    const std::string name = key(field);
    if (fallback != 0 && !files_.metadata().has(name)) return fallback;
    TRY_ASSIGN(const int64_t value, files_.metadata().integer(name));
    if (value < 1 || value > kMaxSize) {
      return error(name, ": expected 1 to ", kMaxSize, ", found ", value);
    }
    return value;
  }
  Result<double> positive(const Field& field, double fallback) const {
    const std::string name = key(field);
    TRY_ASSIGN(const double value, files_.metadata().number_or(name, fallback));
    if (!(value > 0) || !std::isfinite(value)) {
      return error(name, ": expected a positive number, found ", value);
    }
    return value;
  }

 private:
  const ModelFiles& files_;
  std::string prefix_;
};

// GGUF files need not store the vocabulary's size: the embedding has one row per token.
Result<int64_t> vocabulary(const ModelFiles& files, const Reader& reader) {
  if (files.format() == ModelFormat::kHuggingFace || reader.has({"vocab_size", "vocab_size"})) {
    return reader.size({"vocab_size", "vocab_size"});
  }
  const WeightTensor* table = files.weights().find("token_embd.weight");
  if (table == nullptr) return error("tensor 'token_embd.weight' is missing");
  if (table->view.shape.rank != 2) {
    return error("tensor 'token_embd.weight': expected [vocabulary, hidden], found ",
                 to_string(table->view.shape));
  }
  return table->view.shape[0];
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const ModelFiles& files) {
  const Reader reader(files);
  DecoderConfig c;
  const Field heads{"attention.head_count", "num_attention_heads"};
  const Field kv_heads{"attention.head_count_kv", "num_key_value_heads"};
  const Field head_dim{"attention.key_length", "head_dim"};
  const Field epsilon{"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  TRY_ASSIGN(c.layers, reader.size({"block_count", "num_hidden_layers"}));
  TRY_ASSIGN(c.hidden, reader.size({"embedding_length", "hidden_size"}));
  TRY_ASSIGN(c.heads, reader.size(heads));
  TRY_ASSIGN(c.kv_heads, reader.size(kv_heads, c.heads));
  TRY_ASSIGN(c.ffn, reader.size({"feed_forward_length", "intermediate_size"}));
  TRY_ASSIGN(c.context_length, reader.size({"context_length", "max_position_embeddings"}));
  TRY_ASSIGN(c.vocab_size, vocabulary(files, reader));
  if (c.heads % c.kv_heads != 0) {
    return error(reader.key(heads), ": ", c.heads, " is not a multiple of ", reader.key(kv_heads),
                 ", which is ", c.kv_heads);
  }
  if (!reader.has(head_dim) && c.hidden % c.heads != 0) {
    return error(reader.key(heads), ": ", c.heads, " does not divide the hidden size ", c.hidden);
  }
  TRY_ASSIGN(c.head_dim, reader.size(head_dim, std::max<int64_t>(1, c.hidden / c.heads)));
  TRY_ASSIGN(c.rotary_dim, reader.size({"rope.dimension_count", "rotary_dim"}, c.head_dim));
  if (c.rotary_dim % 2 != 0 || c.rotary_dim > c.head_dim) {
    return error("rotary dimension: expected an even number up to the head size ", c.head_dim,
                 ", found ", c.rotary_dim);
  }
  TRY_ASSIGN(const double eps, reader.positive(epsilon, 1e-5));
  TRY_ASSIGN(c.rope_base, reader.positive({"rope.freq_base", "rope_theta"}, 10000));
  c.norm_eps = static_cast<float>(eps);
  c.attention_scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  return c;
}

ModelInfo decoder_info(const DecoderConfig& c, const std::string& architecture,
                       size_t bytes_per_token) {
  KvSpec group;
  group.layers = static_cast<int>(c.layers);
  group.kv_heads = static_cast<int>(c.kv_heads);
  group.k_dim = static_cast<int>(c.head_dim);
  group.v_dim = static_cast<int>(c.head_dim);
  return ModelInfo{architecture,     c.layers, c.hidden,       c.vocab_size,
                   c.context_length, {group},  bytes_per_token};
}

}  // namespace tinyvllm
