// Qwen 2 and 2.5: RMSNorm before attention and feed-forward, grouped heads, biases on Q, K and V,
// a SiLU gate; the small ones share one table between embedding and head.
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
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

struct Layer {
  ops::Norm attention_norm;  // [hidden]
  ops::Linear qkv;           // [hidden] → [heads + 2 · kv_heads, head_dim]
  ops::Linear output;        // [heads · head_dim] → [hidden]
  ops::Norm ffn_norm;        // [hidden]
  ops::Linear gate_up;       // [hidden] → [2 · ffn]
  ops::Linear down;          // [ffn] → [hidden]
};

class Qwen2 final : public Model {
 public:
  Status bind(const ModelFiles& files, Device& device, ThreadPool& pool,
              const ModelOptions& options);
  const ModelInfo& info() const override { return info_; }
  void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const override;

 private:
  DecoderConfig config_;
  ModelInfo info_;
  ops::Rope rope_;
  Ends ends_;
  std::vector<Layer> layers_;
};

Status Qwen2::bind(const ModelFiles& files, Device& device, ThreadPool& pool,
                   const ModelOptions& options) {
  const ConfigReader reader(files, options.listing);
  TRY_ASSIGN(config_, read_decoder_config(reader, files));
  TRY(reader.refuse({"", "use_sliding_window"}, "windows on some of the layers are not supported"));
  const DecoderConfig& c = config_;
  WeightBinder binder(files, device, pool, kNames, options);
  TRY_ASSIGN(rope_, bind_rope(binder, c, ops::RopePairing::kHalves, options));
  TRY_ASSIGN(ends_, bind_ends(binder, c));
  constexpr auto kRms = ops::NormKind::kRms;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    Layer layer;
    TRY_ASSIGN(layer.attention_norm, binder.norm(at + "attn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.qkv, bind_qkv(binder, at, c, /*bias=*/true));
    TRY_ASSIGN(layer.output, binder.linear({{at + "attn_output", c.hidden}}, c.q_width()));
    TRY_ASSIGN(layer.ffn_norm, binder.norm(at + "ffn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.gate_up, bind_gate_up(binder, at, c));
    TRY_ASSIGN(layer.down, binder.linear({{at + "ffn_down", c.hidden}}, c.ffn));
    layers_.push_back(std::move(layer));
  }
  TRY(binder.finish());
  info_ = decoder_info(c, "qwen2", binder.bytes_per_token(), {kv_group(c, c.layers, 0, options)});
  return Status();
}

void Qwen2::forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const {
  const DecoderConfig& c = config_;
  const int64_t tokens = batch.sizes.num_tokens;
  const Tensor x = ctx.residual(tokens, c.hidden);
  ops::embedding(ctx, ends_.embedding, batch, 1, x);
  for (int i = 0; i < static_cast<int>(c.layers); ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const LayerScope scope(ctx, i);

    const Qkv qkv = make_qkv(ctx, c, tokens);
    const Tensor mixed = ctx.tensor(tokens, c.q_width());
    ops::norm_linear(ctx, layer.attention_norm, layer.qkv, x, qkv.all);
    ops::rope_kv_write(ctx, rope_, batch, {0, i}, qkv.q, qkv.k, qkv.v);
    ops::attention(ctx, attention_params(c), batch, {0, i}, qkv.q, mixed);
    ops::linear_add(ctx, layer.output, mixed, x);

    const Tensor gated = ctx.tensor(tokens, c.ffn);
    ops::norm_linear_gated(ctx, layer.ffn_norm, layer.gate_up, ops::Gate::kSilu, x, gated);
    ops::linear_add(ctx, layer.down, gated, x);
  }
  write_logits(ctx, ends_, batch, x, outputs);
}

}  // namespace

Result<std::unique_ptr<Model>> load_qwen2(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions& options) {
  auto model = std::make_unique<Qwen2>();
  TRY(model->bind(files, device, pool, options));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace tinyvllm
