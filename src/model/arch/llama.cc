// Llama and what is shaped like it: RMSNorm before attention and feed-forward, grouped heads,
// rotary positions, a SiLU gate.
#include "model/arch/arch.h"
#include "model/binder.h"
#include "model/config_reader.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"

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

class Llama final : public Model {
 public:
  Status bind(const ModelFiles& files, Device& device, ThreadPool& pool);
  const ModelInfo& info() const override { return info_; }
  void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const override;

 private:
  DecoderConfig config_;
  ModelInfo info_;
  ops::Rope rope_;
  ops::Embedding embedding_;
  std::vector<Layer> layers_;
  ops::Norm final_norm_;
  ops::Linear head_;
};

Status Llama::bind(const ModelFiles& files, Device& device, ThreadPool& pool) {
  TRY_ASSIGN(config_, read_decoder_config(files));
  const DecoderConfig& c = config_;
  // GGUF files of this architecture have Q and K reordered so that neighbours rotate together.
  const bool gguf = files.format() == ModelFormat::kGguf;
  rope_ = ops::make_rope(gguf ? ops::RopePairing::kAdjacent : ops::RopePairing::kHalves,
                         static_cast<int>(c.head_dim), static_cast<int>(c.rotary_dim), c.rope_base);

  WeightBinder binder(files, device, pool, kNames);
  const int64_t q = c.heads * c.head_dim;
  const int64_t kv = c.kv_heads * c.head_dim;
  constexpr auto kRms = ops::NormKind::kRms;
  TRY_ASSIGN(embedding_, binder.embedding("token_embd", c.vocab_size, c.hidden));
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    Layer layer;
    TRY_ASSIGN(layer.attention_norm, binder.norm(at + "attn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(
        layer.qkv,
        binder.linear({{at + "attn_q", q}, {at + "attn_k", kv}, {at + "attn_v", kv}}, c.hidden));
    TRY_ASSIGN(layer.output, binder.linear({{at + "attn_output", c.hidden}}, q));
    TRY_ASSIGN(layer.ffn_norm, binder.norm(at + "ffn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.gate_up,
               binder.linear({{at + "ffn_gate", c.ffn}, {at + "ffn_up", c.ffn}}, c.hidden));
    TRY_ASSIGN(layer.down, binder.linear({{at + "ffn_down", c.hidden}}, c.ffn));
    layers_.push_back(std::move(layer));
  }
  TRY_ASSIGN(final_norm_, binder.norm("output_norm", kRms, c.norm_eps, c.hidden));
  const char* head = binder.has("output") ? "output" : "token_embd";  // tied when it has none
  TRY_ASSIGN(head_, binder.linear({{head, c.vocab_size}}, c.hidden));
  TRY(binder.finish());

  info_ = decoder_info(c, "llama", binder.bytes_per_token());
  return Status();
}

void Llama::forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const {
  const DecoderConfig& c = config_;
  const int64_t tokens = batch.sizes.num_tokens;
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;

  const Tensor x = ctx.tensor(tokens, c.hidden);
  ops::embedding(ctx, embedding_, batch, 1, x);
  for (int i = 0; i < static_cast<int>(c.layers); ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const ArenaScope scope(ctx.arena);
    ctx.layer = i;

    const Tensor qkv = ctx.tensor(tokens, q_width + 2 * kv_width);
    const Tensor q = qkv.columns(0, q_width);
    const Tensor k = qkv.columns(q_width, kv_width);
    const Tensor v = qkv.columns(q_width + kv_width, kv_width);
    const Tensor mixed = ctx.tensor(tokens, q_width);
    ops::norm_linear(ctx, layer.attention_norm, layer.qkv, x, qkv);
    ops::rope_kv_write(ctx, rope_, batch, {0, i}, q, k, v);
    ops::attention(ctx, {static_cast<int>(c.heads), c.attention_scale, 0}, batch, {0, i}, q, mixed);
    ops::linear_add(ctx, layer.output, mixed, x);

    const Tensor gated = ctx.tensor(tokens, c.ffn);
    ops::norm_linear_gated(ctx, layer.ffn_norm, layer.gate_up, ops::Gate::kSilu, x, gated);
    ops::linear_add(ctx, layer.down, gated, x);
  }
  ctx.layer = -1;
  const Tensor last = ctx.tensor(batch.sizes.num_logits, c.hidden);
  ops::gather_logit_rows(ctx, batch, x, last);
  ops::norm_linear(ctx, final_norm_, head_, last, outputs.logits);
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions&) {
  auto model = std::make_unique<Llama>();
  TRY(model->bind(files, device, pool));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace tinyvllm
