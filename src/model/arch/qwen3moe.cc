// Qwen 3 as a mixture: the attention of Qwen 3, and in place of one feed-forward network many small
// ones, of which a router picks a few for every token.
#include "model/arch/arch.h"
#include "model/blocks.h"
#include "ops/moe.h"

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
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

struct MixtureConfig {
  int64_t experts = 0;
  int64_t used = 0;       // per token
  int64_t ffn = 0;        // of each expert
  bool normalize = true;  // the weights of those used add up to 1
};

Result<MixtureConfig> read_mixture(const ConfigReader& reader) {
  MixtureConfig m;
  // The key was renamed on the way to transformers 5.
  const char* count =
      reader.metadata().has("num_local_experts") ? "num_local_experts" : "num_experts";
  const ConfigReader::Field used{"expert_used_count", "num_experts_per_tok"};
  TRY_ASSIGN(m.experts, reader.size({"expert_count", count}));
  TRY_ASSIGN(m.used, reader.size(used));
  TRY_ASSIGN(m.ffn, reader.size({"expert_feed_forward_length", "moe_intermediate_size"}));
  // transformers takes false when config.json says nothing; GGUF files are of normalised models.
  TRY_ASSIGN(m.normalize, reader.flag({"expert_weights_norm", "norm_topk_prob"}, reader.is_gguf()));
  if (m.used > m.experts) {
    return error(reader.key(used), ": expected at most the ", m.experts, " experts there are, ",
                 "found ", m.used);
  }
  const char* why = "layers without experts are not supported";
  TRY(reader.refuse({"", "mlp_only_layers"}, why));
  TRY_ASSIGN(const int64_t step, reader.size({"", "decoder_sparse_step"}, 1));
  if (step != 1) return error("decoder_sparse_step: ", why);
  return m;
}

struct Layer {
  ops::Norm attention_norm;  // [hidden]
  ops::Linear qkv;           // [hidden] → [heads + 2 · kv_heads, head_dim]
  ops::Norm q_norm;          // [head_dim]
  ops::Norm k_norm;          // [head_dim]
  ops::Linear output;        // [heads · head_dim] → [hidden]
  ops::Norm ffn_norm;        // [hidden]
  ops::Linear router;        // [hidden] → [experts]
  ops::Experts experts;      // each [hidden] → [expert_ffn] → [hidden]
};

class Qwen3Moe final : public Model {
 public:
  Status bind(const ModelFiles& files, Device& device, ThreadPool& pool,
              const ModelOptions& options);
  const ModelInfo& info() const override { return info_; }
  void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const override;

 private:
  DecoderConfig config_;
  MixtureConfig mixture_;
  ModelInfo info_;
  ops::Rope rope_;
  Ends ends_;
  std::vector<Layer> layers_;
};

Status Qwen3Moe::bind(const ModelFiles& files, Device& device, ThreadPool& pool,
                      const ModelOptions& options) {
  const ConfigReader reader(files, options.listing);
  TRY_ASSIGN(config_, read_decoder_config(reader, files));
  TRY_ASSIGN(mixture_, read_mixture(reader));
  TRY(reader.refuse({"", "use_sliding_window"}, "windows on some of the layers are not supported"));
  const DecoderConfig& c = config_;
  const MixtureConfig& m = mixture_;
  WeightBinder binder(files, device, pool, kNames, options);
  TRY_ASSIGN(rope_, bind_rope(binder, c, ops::RopePairing::kHalves, options));
  TRY_ASSIGN(ends_, bind_ends(binder, c));
  constexpr auto kRms = ops::NormKind::kRms;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    Layer layer;
    TRY_ASSIGN(layer.attention_norm, binder.norm(at + "attn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.qkv, bind_qkv(binder, at, c));
    TRY_ASSIGN(layer.q_norm, binder.norm(at + "attn_q_norm", kRms, c.norm_eps, c.head_dim));
    TRY_ASSIGN(layer.k_norm, binder.norm(at + "attn_k_norm", kRms, c.norm_eps, c.head_dim));
    TRY_ASSIGN(layer.output, binder.linear({{at + "attn_output", c.hidden}}, c.q_width()));
    TRY_ASSIGN(layer.ffn_norm, binder.norm(at + "ffn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.router, binder.linear({{at + "ffn_gate_inp", m.experts}}, c.hidden));
    TRY_ASSIGN(layer.experts,
               binder.experts({at + "ffn_gate_exps", at + "ffn_up_exps", at + "ffn_down_exps"},
                              m.experts, m.used, c.hidden, m.ffn));
    layers_.push_back(std::move(layer));
  }
  TRY(binder.finish());
  info_ =
      decoder_info(c, "qwen3moe", binder.bytes_per_token(), {kv_group(c, c.layers, 0, options)});
  return Status();
}

void Qwen3Moe::forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const {
  const DecoderConfig& c = config_;
  const int64_t tokens = batch.sizes.num_tokens;
  const ops::MoeParams params{static_cast<int>(mixture_.used), mixture_.normalize,
                              ops::Gate::kSilu};
  const Tensor x = ctx.residual(tokens, c.hidden);
  ops::embedding(ctx, ends_.embedding, batch, 1, x);
  for (int i = 0; i < static_cast<int>(c.layers); ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const LayerScope scope(ctx, i);

    const Qkv qkv = make_qkv(ctx, c, tokens);
    const Tensor mixed = ctx.tensor(tokens, c.q_width());
    ops::norm_linear(ctx, layer.attention_norm, layer.qkv, x, qkv.all);
    ops::head_norm(ctx, layer.q_norm, qkv.q);
    ops::head_norm(ctx, layer.k_norm, qkv.k);
    ops::rope_kv_write(ctx, rope_, batch, {0, i}, qkv.q, qkv.k, qkv.v);
    ops::attention(ctx, attention_params(c), batch, {0, i}, qkv.q, mixed);
    ops::linear_add(ctx, layer.output, mixed, x);

    ops::moe_add(ctx, layer.ffn_norm, layer.router, layer.experts, params, x, x);
  }
  write_logits(ctx, ends_, batch, x, outputs);
}

}  // namespace

Result<std::unique_ptr<Model>> load_qwen3moe(const ModelFiles& files, Device& device,
                                             ThreadPool& pool, const ModelOptions& options) {
  auto model = std::make_unique<Qwen3Moe>();
  TRY(model->bind(files, device, pool, options));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace tinyvllm
