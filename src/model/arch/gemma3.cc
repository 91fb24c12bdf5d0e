// Gemma 3, text: layers that see a window of the last tokens and, every few, one that sees all,
// each kind with its own rotary base and its own group of the KV cache; norms before and after both
// halves of a layer and on every head of Q and K; a GELU gate; embeddings scaled by sqrt(hidden).
#include <cmath>

#include "model/arch/arch.h"
#include "model/blocks.h"

namespace tinyvllm {
namespace {

constexpr NameRow kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

enum Kind : int { kGlobal, kLocal };  // of a layer; where there are both, also its KV group

struct Layer {
  Kind kind;
  KvLayer kv;
  ops::Norm attention_norm;       // [hidden]
  ops::Linear qkv;                // [hidden] → [heads + 2 · kv_heads, head_dim]
  ops::Norm q_norm;               // [head_dim]
  ops::Norm k_norm;               // [head_dim]
  ops::Linear output;             // [heads · head_dim] → [hidden]
  ops::Norm post_attention_norm;  // [hidden]
  ops::Norm ffn_norm;             // [hidden]
  ops::Linear gate_up;            // [hidden] → [2 · ffn]
  ops::Linear down;               // [ffn] → [hidden]
  ops::Norm post_ffn_norm;        // [hidden]
};

// Which layers are local: a list by layer, or every n-th one is not.
Result<std::vector<Kind>> read_kinds(const ConfigReader& reader, int64_t layers, int64_t window) {
  if (window == 0) return std::vector<Kind>(static_cast<size_t>(layers), kGlobal);
  const ConfigReader::Field field{"attention.sliding_window_pattern", "sliding_window_pattern"};
  std::vector<Kind> kinds;
  if (!reader.is_gguf() && reader.has({"", "layer_types"})) {
    TRY_ASSIGN(const auto names, reader.metadata().strings("layer_types"));
    for (const std::string_view name : names) {
      if (name != "full_attention" && name != "sliding_attention") {
        return error("layer_types: expected full_attention or sliding_attention, found '",
                     printable(name), "'");
      }
      kinds.push_back(name == "full_attention" ? kGlobal : kLocal);
    }
  } else if (const auto flags = reader.metadata().booleans(reader.key(field)); flags.ok()) {
    for (const bool local : flags.value()) kinds.push_back(local ? kLocal : kGlobal);
  } else {
    TRY_ASSIGN(const int64_t period, reader.size(field, 6));
    for (int64_t i = 1; i <= layers; ++i) kinds.push_back(i % period == 0 ? kGlobal : kLocal);
  }
  if (static_cast<int64_t>(kinds.size()) != layers) {
    return error("kinds of layers: expected ", layers, ", found ", kinds.size());
  }
  return kinds;
}

Result<double> read_local_base(const ConfigReader& reader) {
  const char* key = reader.metadata().has("rope_local_base_freq")
                        ? "rope_local_base_freq"
                        : "rope_parameters.sliding_attention.rope_theta";
  return reader.positive({"rope.freq_base_swa", key}, 10000);
}

// The queries' scale is 1/sqrt of a number that config.json names and GGUF files leave to us: the
// head size, except in the model of 62 layers.
Result<double> read_query_scalar(const ConfigReader& reader, const DecoderConfig& c) {
  const bool largest = reader.is_gguf() && c.layers == 62;
  return reader.positive({"attention.query_pre_attn_scalar", "query_pre_attn_scalar"},
                         static_cast<double>(largest ? c.hidden / c.heads : c.head_dim));
}

class Gemma3 final : public Model {
 public:
  Status bind(const ModelFiles& files, Device& device, ThreadPool& pool,
              const ModelOptions& options);
  const ModelInfo& info() const override { return info_; }
  void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const override;

 private:
  Status read_config(const ConfigReader& reader, const ModelFiles& files);
  Result<Layer> bind_layer(WeightBinder& binder, int64_t index, float offset) const;

  DecoderConfig config_;
  int64_t window_ = 0;
  std::vector<Kind> kinds_;  // [layers]
  ModelInfo info_;
  ops::Rope ropes_[2];  // by kind
  Ends ends_;
  std::vector<Layer> layers_;
};

Status Gemma3::read_config(const ConfigReader& reader, const ModelFiles& files) {
  const ConfigReader::Field cap{"final_logit_softcapping", "final_logit_softcapping"};
  TRY(reader.refuse(cap, "a cap on logits is not supported"));
  TRY(reader.refuse({"attn_logit_softcapping", "attn_logit_softcapping"},
                    "a cap on attention is not supported"));
  TRY(reader.refuse({"", "use_bidirectional_attention"}, "only causal attention is supported"));
  TRY_ASSIGN(config_, read_decoder_config(reader, files));
  TRY_ASSIGN(config_.tied_head, reader.flag({"", "tie_word_embeddings"}, true));
  TRY_ASSIGN(const double scalar, read_query_scalar(reader, config_));
  config_.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  TRY_ASSIGN(window_, reader.window());
  TRY_ASSIGN(kinds_, read_kinds(reader, config_.layers, window_));
  return Status();
}

Result<Layer> Gemma3::bind_layer(WeightBinder& binder, int64_t index, float offset) const {
  const DecoderConfig& c = config_;
  const std::string at = str_cat("blk.", index, ".");
  const auto norm = [&](const char* name, int64_t width) {
    return binder.norm(at + name, ops::NormKind::kRms, c.norm_eps, width, offset);
  };
  Layer layer;
  TRY_ASSIGN(layer.attention_norm, norm("attn_norm", c.hidden));
  TRY_ASSIGN(layer.qkv, bind_qkv(binder, at, c));
  TRY_ASSIGN(layer.q_norm, norm("attn_q_norm", c.head_dim));
  TRY_ASSIGN(layer.k_norm, norm("attn_k_norm", c.head_dim));
  TRY_ASSIGN(layer.output, binder.linear({{at + "attn_output", c.hidden}}, c.q_width()));
  TRY_ASSIGN(layer.post_attention_norm, norm("post_attention_norm", c.hidden));
  TRY_ASSIGN(layer.ffn_norm, norm("ffn_norm", c.hidden));
  TRY_ASSIGN(layer.gate_up, bind_gate_up(binder, at, c));
  TRY_ASSIGN(layer.down, binder.linear({{at + "ffn_down", c.hidden}}, c.ffn));
  TRY_ASSIGN(layer.post_ffn_norm, norm("post_ffw_norm", c.hidden));
  return layer;
}

Status Gemma3::bind(const ModelFiles& files, Device& device, ThreadPool& pool,
                    const ModelOptions& options) {
  const ConfigReader reader(files, options.listing);
  TRY(read_config(reader, files));
  const DecoderConfig& c = config_;
  WeightBinder binder(files, device, pool, kNames, options);
  TRY_ASSIGN(const double local_base, read_local_base(reader));
  TRY_ASSIGN(ropes_[kGlobal], bind_rope(binder, c, ops::RopePairing::kHalves, options));
  ropes_[kLocal] = ops::make_rope(ops::RopePairing::kHalves, static_cast<int>(c.head_dim),
                                  static_cast<int>(c.rotary_dim), local_base);
  const float offset = reader.is_gguf() ? 0 : 1;  // Hugging Face files store norms as w − 1
  TRY_ASSIGN(ends_, bind_ends(binder, c, offset));

  // A kind without layers has no group.
  int counts[2] = {};
  for (const Kind kind : kinds_) counts[kind] += 1;
  const int group[2] = {0, counts[kGlobal] > 0 ? 1 : 0};
  int index[2] = {};
  for (int64_t i = 0; i < c.layers; ++i) {
    TRY_ASSIGN(Layer layer, bind_layer(binder, i, offset));
    layer.kind = kinds_[static_cast<size_t>(i)];
    layer.kv = {group[layer.kind], index[layer.kind]++};
    layers_.push_back(std::move(layer));
  }
  TRY(binder.finish());
  std::vector<KvSpec> groups;
  if (counts[kGlobal] > 0) groups.push_back(kv_group(c, counts[kGlobal], 0, options));
  if (counts[kLocal] > 0) groups.push_back(kv_group(c, counts[kLocal], window_, options));
  info_ = decoder_info(c, "gemma3", binder.bytes_per_token(), std::move(groups));
  return Status();
}

void Gemma3::forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const {
  const DecoderConfig& c = config_;
  const int64_t tokens = batch.sizes.num_tokens;
  const Tensor x = ctx.residual(tokens, c.hidden);
  ops::embedding(ctx, ends_.embedding, batch, std::sqrt(static_cast<float>(c.hidden)), x);
  for (const Layer& layer : layers_) {
    const LayerScope scope(ctx, static_cast<int>(&layer - layers_.data()));

    const Qkv qkv = make_qkv(ctx, c, tokens);
    const Tensor mixed = ctx.tensor(tokens, c.q_width());
    const Tensor added = ctx.residual(tokens, c.hidden);
    ops::norm_linear(ctx, layer.attention_norm, layer.qkv, x, qkv.all);
    ops::head_norm(ctx, layer.q_norm, qkv.q);
    ops::head_norm(ctx, layer.k_norm, qkv.k);
    ops::rope_kv_write(ctx, ropes_[layer.kind], batch, layer.kv, qkv.q, qkv.k, qkv.v);
    ops::attention(ctx, attention_params(c), batch, layer.kv, qkv.q, mixed);
    ops::linear(ctx, layer.output, mixed, added);
    ops::norm_add(ctx, layer.post_attention_norm, added, x);

    const Tensor gated = ctx.tensor(tokens, c.ffn);
    ops::norm_linear_gated(ctx, layer.ffn_norm, layer.gate_up, ops::Gate::kGeluTanh, x, gated);
    ops::linear(ctx, layer.down, gated, added);
    ops::norm_add(ctx, layer.post_ffn_norm, added, x);
  }
  write_logits(ctx, ends_, batch, x, outputs);
}

}  // namespace

Result<std::unique_ptr<Model>> load_gemma3(const ModelFiles& files, Device& device,
                                           ThreadPool& pool, const ModelOptions& options) {
  auto model = std::make_unique<Gemma3>();
  TRY(model->bind(files, device, pool, options));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace tinyvllm
