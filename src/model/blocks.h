// What at least three architectures have in the same form. Less than that, and it stays in the
// architecture's own page.
#pragma once

#include "model/binder.h"
#include "model/decoder_config.h"
#include "model/layer_scope.h"
#include "model/registry.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"

namespace tinyvllm {

// Tokens on the way in, logits on the way out. Both may be the same tensor.
struct Ends {
  ops::Embedding embedding;  // [vocab_size, hidden]
  ops::Norm norm;            // [hidden]
  ops::Linear head;          // [hidden] → [vocab_size]
};
Result<Ends> bind_ends(WeightBinder& binder, const DecoderConfig& config, float norm_offset = 0);

// The rows that logits are wanted of: picked, normalised, multiplied with the head.
void write_logits(ExecContext& ctx, const Ends& ends, const Batch& batch, const Tensor& x,
                  const Outputs& outputs);

// Rotary positions with the scaling that the files ask for, at the model length in use.
Result<ops::Rope> bind_rope(WeightBinder& binder, const DecoderConfig& config,
                            ops::RopePairing pairing, const ModelOptions& options);

// Q, K and V of a layer, side by side as one projection leaves them.
struct Qkv {
  Tensor all;  // [tokens, q_width + 2 · kv_width]
  Tensor q;    // [tokens, heads · head_dim]
  Tensor k;    // [tokens, kv_heads · head_dim]
  Tensor v;    // [tokens, kv_heads · head_dim]
};
Qkv make_qkv(ExecContext& ctx, const DecoderConfig& config, int64_t tokens);
Result<ops::Linear> bind_qkv(WeightBinder& binder, const std::string& at,
                             const DecoderConfig& config, bool bias = false);

// Gate and up of a feed-forward network as one projection.
Result<ops::Linear> bind_gate_up(WeightBinder& binder, const std::string& at,
                                 const DecoderConfig& config, bool bias = false);

ops::AttentionParams attention_params(const DecoderConfig& config);

// Llama's layer: a norm before attention, a norm before the gated feed-forward, nothing else.
struct PlainLayer {
  ops::Norm attention_norm;  // [hidden]
  ops::Linear qkv;           // [hidden] → [heads + 2 · kv_heads, head_dim]
  ops::Linear output;        // [heads · head_dim] → [hidden]
  ops::Norm ffn_norm;        // [hidden]
  ops::Linear gate_up;       // [hidden] → [2 · ffn]
  ops::Linear down;          // [ffn] → [hidden]
};

// A model of nothing but such layers, one KV group for all of them. An architecture binds the
// weights; a layer that does anything more is not plain, and its model has a forward of its own.
struct PlainDecoder final : public Model {
  const ModelInfo& info() const override { return model_info; }
  void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const override;

  DecoderConfig config;
  ModelInfo model_info;
  ops::Rope rope;
  Ends ends;
  std::vector<PlainLayer> layers;
};

}  // namespace tinyvllm
