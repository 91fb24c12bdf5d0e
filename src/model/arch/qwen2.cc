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

}  // namespace

Result<std::unique_ptr<Model>> load_qwen2(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions& options) {
  auto model = std::make_unique<PlainDecoder>();
  const ConfigReader reader(files, options.listing);
  TRY_ASSIGN(model->config, read_decoder_config(reader, files));
  TRY(reader.refuse({"", "use_sliding_window"}, "windows on some of the layers are not supported"));
  const DecoderConfig& c = model->config;
  WeightBinder binder(files, device, pool, kNames, options);
  TRY_ASSIGN(model->rope, bind_rope(binder, c, ops::RopePairing::kHalves, options));
  TRY_ASSIGN(model->ends, bind_ends(binder, c));
  constexpr auto kRms = ops::NormKind::kRms;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    PlainLayer layer;
    TRY_ASSIGN(layer.attention_norm, binder.norm(at + "attn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.qkv, bind_qkv(binder, at, c, /*bias=*/true));
    TRY_ASSIGN(layer.output, binder.linear({{at + "attn_output", c.hidden}}, c.q_width()));
    TRY_ASSIGN(layer.ffn_norm, binder.norm(at + "ffn_norm", kRms, c.norm_eps, c.hidden));
    TRY_ASSIGN(layer.gate_up, bind_gate_up(binder, at, c));
    TRY_ASSIGN(layer.down, binder.linear({{at + "ffn_down", c.hidden}}, c.ffn));
    model->layers.push_back(std::move(layer));
  }
  TRY(binder.finish());
  model->model_info =
      decoder_info(c, "qwen2", binder.bytes_per_token(), {kv_group(c, c.layers, 0, options)});
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace tinyvllm
