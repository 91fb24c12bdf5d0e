#include "io/model_summary.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "io/tokenizer_kind.h"

namespace tinyvllm {
namespace {

using Names = std::initializer_list<const char*>;

constexpr int64_t kMaxLayers = 65536;

// One value under its GGUF key ("block_count" of "llama.block_count") or any of the names that
// Hugging Face configurations use for it.
class Config {
 public:
  Config(const ModelFiles& files, std::string architecture)
      : gguf_(files.format() == ModelFormat::kGguf),
        metadata_(files.metadata()),
        architecture_(std::move(architecture)) {}

  // The key under which the file has the value; empty when it has none. The part of a multimodal
  // configuration that is about text comes first.
  std::string key(const char* gguf, Names hf) const {
    if (gguf_) {
      const std::string key = str_cat(architecture_, ".", gguf);
      return *gguf != '\0' && metadata_.has(key) ? key : "";
    }
    for (const char* prefix : {"text_config.", "llm_config.", ""}) {
      for (const char* name : hf) {
        if (const std::string key = str_cat(prefix, name); metadata_.has(key)) return key;
      }
    }
    return "";
  }

  Result<std::optional<int64_t>> integer(const char* gguf, Names hf) const {
    const std::string found = key(gguf, hf);
    if (found.empty()) return std::optional<int64_t>();
    TRY_ASSIGN(const int64_t value, metadata_.integer(found));
    TRY(check_range(found, value));
    return std::optional<int64_t>(value);
  }

  // A value for all layers, or a list with one for each.
  Result<std::vector<int64_t>> per_layer(const char* gguf, Names hf, int64_t layers) const {
    const std::string found = key(gguf, hf);
    if (found.empty()) return std::vector<int64_t>();
    if (const Result<int64_t> value = metadata_.integer(found); value.ok()) {
      TRY(check_range(found, value.value()));
      return std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(layers, 1)), value.value());
    }
    TRY_ASSIGN(std::vector<int64_t> values, metadata_.integers(found));
    if (static_cast<int64_t>(values.size()) != layers) {
      return error("key '", printable(found), "' has ", values.size(),
                   " elements; expected one for each of the ", layers, " layers");
    }
    for (const int64_t value : values) TRY(check_range(found, value));
    return values;
  }

  Result<std::optional<double>> number(const char* gguf, Names hf) const {
    const std::string found = key(gguf, hf);
    if (found.empty()) return std::optional<double>();
    TRY_ASSIGN(const double value, metadata_.number(found));
    return std::optional<double>(value);
  }

  Result<std::string> string(const char* gguf, Names hf) const {
    const std::string found = key(gguf, hf);
    if (found.empty()) return std::string();
    TRY_ASSIGN(const std::string_view value, metadata_.string(found));
    return std::string(value);
  }

 private:
  static Status check_range(const std::string& key, int64_t value) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    if (value >= 0 && value <= kMax) return Status();
    return error("key '", printable(key), "' is ", value, "; expected 0 to ", kMax);
  }

  bool gguf_;
  const Metadata& metadata_;
  std::string architecture_;
};

std::optional<int64_t> largest(const std::vector<int64_t>& values) {
  if (values.empty()) return std::nullopt;
  return *std::max_element(values.begin(), values.end());
}

Result<std::string> read_architecture(const ModelFiles& files) {
  const bool gguf = files.format() == ModelFormat::kGguf;
  TRY_ASSIGN(const std::string_view name,
             files.metadata().string(gguf ? "general.architecture" : "model_type"));
  return std::string(name);
}

// Per-layer sizes of attention, which together make the KV cache.
struct Attention {
  std::vector<int64_t> heads, kv_heads;
  std::optional<int64_t> k_dim, v_dim, latent_dim;
};

// The head's size is stated, or the width divided by the heads, and then it must divide.
Result<std::optional<int64_t>> head_size(std::optional<int64_t> stated, const ModelSummary& s) {
  if (stated || !s.width || s.heads.value_or(0) == 0) return stated;
  if (*s.width % *s.heads != 0) {
    return error("a width of ", *s.width, " does not divide into ", *s.heads,
                 " heads, and no head size is given");
  }
  return std::optional<int64_t>(*s.width / *s.heads);
}

Result<Attention> read_attention(const Config& config, ModelSummary& s) {
  Attention a;
  const int64_t layers = s.layers.value_or(0);
  TRY_ASSIGN(a.heads,
             config.per_layer("attention.head_count",
                              {"num_attention_heads", "num_heads", "n_head", "n_heads"}, layers));
  TRY_ASSIGN(a.kv_heads,
             config.per_layer("attention.head_count_kv",
                              {"num_key_value_heads", "num_kv_heads", "n_head_kv"}, layers));
  if (a.kv_heads.empty()) a.kv_heads = a.heads;
  for (size_t i = 0; i < std::min(a.heads.size(), a.kv_heads.size()); ++i) {
    if (a.kv_heads[i] == 0 || a.heads[i] % a.kv_heads[i] == 0) continue;
    return error("layer ", i, ": ", a.heads[i], " heads do not divide among ", a.kv_heads[i],
                 " KV heads");
  }
  s.heads = largest(a.heads);
  s.kv_heads = largest(a.kv_heads);

  TRY_ASSIGN(a.k_dim, config.integer("attention.key_length", {"head_dim"}));
  TRY_ASSIGN(a.v_dim, config.integer("attention.value_length", {"v_head_dim", "head_dim"}));
  TRY_ASSIGN(a.k_dim, head_size(a.k_dim, s));
  TRY_ASSIGN(a.v_dim, head_size(a.v_dim, s));
  s.head_dim = a.k_dim;

  // Latent attention keeps one compressed vector per token and layer, and the rotated part of K.
  TRY_ASSIGN(const auto rank, config.integer("attention.kv_lora_rank", {"kv_lora_rank"}));
  TRY_ASSIGN(const auto rotated, config.integer("rope.dimension_count", {"qk_rope_head_dim"}));
  if (rank.value_or(0) > 0 && rotated) a.latent_dim = *rank + *rotated;
  return a;
}

// F16: two bytes an element. Sizes are 31-bit, so only the sum over layers can grow too large.
Result<std::optional<uint64_t>> kv_per_token(const Attention& a) {
  constexpr uint64_t kElementBytes = 2;
  if (a.kv_heads.empty() || !a.k_dim || !a.v_dim) return std::optional<uint64_t>();
  const auto both = static_cast<uint64_t>(*a.k_dim + *a.v_dim);
  uint64_t total = 0;
  for (const int64_t kv_heads : a.kv_heads) {
    uint64_t layer = 0;
    if (a.latent_dim) {
      layer = static_cast<uint64_t>(*a.latent_dim) * kElementBytes;
    } else if (__builtin_mul_overflow(static_cast<uint64_t>(kv_heads) * kElementBytes, both,
                                      &layer)) {
      return error(kv_heads, " KV heads of ", both, " elements are more than 2^64 bytes");
    }
    if (__builtin_add_overflow(total, layer, &total)) {
      return error("the KV cache of one token takes more than 2^64 bytes");
    }
  }
  return std::optional<uint64_t>(total);
}

Status read_rope(const Config& config, ModelSummary& s) {
  TRY_ASSIGN(s.rope_base,
             config.number("rope.freq_base",
                           {"rope_theta", "rope_parameters.rope_theta", "rotary_emb_base"}));
  TRY_ASSIGN(s.rope_dims,
             config.integer("rope.dimension_count", {"qk_rope_head_dim", "rotary_dim"}));
  TRY_ASSIGN(s.rope_scaling,
             config.string("rope.scaling.type", {"rope_scaling.rope_type", "rope_scaling.type",
                                                 "rope_parameters.rope_type"}));
  if (s.rope_scaling == "none" || s.rope_scaling == "default") s.rope_scaling.clear();
  TRY_ASSIGN(s.rope_factor, config.number("rope.scaling.factor",
                                          {"rope_scaling.factor", "rope_parameters.factor"}));
  if (!s.rope_dims && s.rope_base) s.rope_dims = s.head_dim;
  return Status();
}

Status read_network(const ModelFiles& files, ModelSummary& s) {
  const Config config(files, s.architecture);
  TRY_ASSIGN(s.layers, config.integer("block_count",
                                      {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}));
  // The lists below have an entry for each layer; no network is near this deep.
  if (s.layers.value_or(0) > kMaxLayers) {
    return error("the file says ", *s.layers, " layers; expected at most ", kMaxLayers);
  }
  TRY_ASSIGN(s.width, config.integer("embedding_length", {"hidden_size", "n_embd", "d_model"}));
  TRY_ASSIGN(const Attention attention, read_attention(config, s));
  if (s.layers) {
    TRY_ASSIGN(s.kv_bytes_per_token, kv_per_token(attention));
  }
  TRY_ASSIGN(const auto ffn, config.per_layer("feed_forward_length",
                                              {"intermediate_size", "n_inner", "ffn_dim",
                                               "ffn_hidden_size", "moe_intermediate_size"},
                                              s.layers.value_or(0)));
  s.ffn_dim = largest(ffn);
  TRY_ASSIGN(s.vocab_size, config.integer("vocab_size", {"vocab_size", "padded_vocab_size"}));
  TRY_ASSIGN(
      s.context_length,
      config.integer("context_length", {"max_position_embeddings", "n_positions", "n_ctx",
                                        "max_seq_len", "seq_length", "max_sequence_length"}));
  TRY_ASSIGN(s.experts, config.integer("expert_count",
                                       {"num_local_experts", "num_experts", "n_routed_experts"}));
  TRY_ASSIGN(s.experts_used,
             config.integer("expert_used_count", {"num_experts_per_tok", "num_experts_per_token"}));
  TRY_ASSIGN(const bool slides, files.metadata().boolean_or("use_sliding_window", true));
  if (slides) {
    TRY_ASSIGN(s.sliding_window, config.integer("attention.sliding_window", {"sliding_window"}));
  }
  return read_rope(config, s);
}

void add(TensorTotals& totals, const TensorView& view) {
  totals.tensors += 1;
  totals.parameters += static_cast<uint64_t>(view.shape.elements());
  totals.bytes += view.bytes();
}

// Of routed experts a token reads the share it is sent to; of a table, one row.
uint64_t bytes_read(const WeightTensor& tensor, const TensorRole& role, const ModelSummary& s) {
  const uint64_t bytes = tensor.view.bytes();
  if (!role.decoded) return 0;
  if (role.by_row) return row_bytes(tensor.view.dtype, tensor.view.shape.row_elements());
  if (role.experts && s.experts.value_or(0) > 0 && s.experts_used) {
    const double share = static_cast<double>(*s.experts_used) / static_cast<double>(*s.experts);
    return static_cast<uint64_t>(static_cast<double>(bytes) * std::min(share, 1.0));
  }
  return bytes;
}

bool is_token_embedding(std::string_view name) {
  for (const char* tail : {"token_embd.weight", "embed_tokens.weight", "wte.weight",
                           "word_embeddings.weight", "embed_in.weight", "tok_embeddings.weight"}) {
    if (name.ends_with(tail) && name.find("per_layer") == std::string_view::npos) return true;
  }
  return false;
}

void add_up(const ModelFiles& files, ModelSummary& s) {
  const WeightTensor* embedding = nullptr;
  for (const WeightTensor& tensor : files.weights().tensors()) {
    const TensorRole role = tensor_role(files.format(), tensor.name);
    add(s.total, tensor.view);
    add(s.components[static_cast<size_t>(role.component)], tensor.view);
    add(s.dtypes[dtype_name(tensor.view.dtype)], tensor.view);
    s.bytes_per_token += bytes_read(tensor, role, s);
    if (role.component == Component::kEmbedding && is_token_embedding(tensor.name)) {
      embedding = &tensor;
    }
  }
  if (embedding == nullptr) return;
  if (!s.vocab_size) s.vocab_size = embedding->view.shape[0];
  s.tied_head = s.components[static_cast<size_t>(Component::kHead)].tensors == 0;
  if (s.tied_head) {  // the whole matrix, which the row of the lookup is a part of
    s.bytes_per_token += embedding->view.bytes() -
                         row_bytes(embedding->view.dtype, embedding->view.shape.row_elements());
  }
}

}  // namespace

Result<ModelSummary> summarize(const ModelFiles& files) {
  ModelSummary s;
  TRY_ASSIGN(s.architecture, read_architecture(files));
  TRY_ASSIGN(const std::string_view name, files.metadata().string_or("general.name", ""));
  s.name = name;
  s.file_bytes = files.file_bytes();
  s.tokenizer = tokenizer_kind(files.tokenizer());
  s.has_chat_template = has_chat_template(files.tokenizer());
  TRY(read_network(files, s));
  if (!s.vocab_size && files.tokenizer().gguf) {
    s.vocab_size = static_cast<int64_t>(files.tokenizer().gguf->tokens.size());
  }
  add_up(files, s);
  return s;
}

std::optional<uint64_t> kv_bytes(const ModelSummary& summary, int64_t tokens) {
  uint64_t bytes = 0;
  if (!summary.kv_bytes_per_token || tokens < 0 ||
      __builtin_mul_overflow(*summary.kv_bytes_per_token, static_cast<uint64_t>(tokens), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace tinyvllm
