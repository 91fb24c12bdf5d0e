#include "model/blocks.h"

#include "ops/rope_scaling.h"

namespace tinyvllm {
namespace {

using Scaling = RopeConfig::Scaling;

Status check_count(const char* what, const std::vector<float>& factors, int64_t expected) {
  if (static_cast<int64_t>(factors.size()) == expected) return Status();
  return error(what, ": expected ", expected, " factors, one per rotating pair, found ",
               factors.size());
}

// Which of longrope's two lists holds is decided once, by the length that the model is loaded for.
Status scale_longrope(ops::Rope& rope, const RopeConfig& config, int64_t length) {
  const auto pairs = static_cast<int64_t>(rope.frequencies.size());
  TRY(check_count("longrope's short_factor", config.short_factors, pairs));
  TRY(check_count("longrope's long_factor", config.long_factors, pairs));
  ops::scale_rope_pairs(
      rope, length > config.original_length ? config.long_factors : config.short_factors);
  return Status();
}

double magnitude(const RopeConfig& config) {
  if (config.magnitude) return *config.magnitude;
  if (config.scaling == Scaling::kYarn) return ops::yarn_magnitude(config.factor);
  if (config.scaling == Scaling::kLongrope) {
    return ops::longrope_magnitude(config.factor, config.original_length);
  }
  return 1;
}

// GGUF files keep the factors of llama3 and longrope as tensors, whatever type they name.
Result<RopeConfig> with_tensors(WeightBinder& binder, RopeConfig config, int64_t pairs) {
  if (binder.format() != ModelFormat::kGguf || !binder.has("rope_factors_long")) return config;
  TRY_ASSIGN(config.long_factors, binder.factors("rope_factors_long", pairs));
  TRY_ASSIGN(config.short_factors, binder.factors("rope_factors_short", pairs));
  config.scaling = Scaling::kLongrope;
  config.magnitude = config.magnitude.value_or(1);  // these files state it
  return config;
}

}  // namespace

Result<Ends> bind_ends(WeightBinder& binder, const DecoderConfig& c, float norm_offset) {
  Ends ends;
  TRY_ASSIGN(ends.embedding, binder.embedding("token_embd", c.vocab_size, c.hidden));
  TRY_ASSIGN(ends.norm,
             binder.norm("output_norm", ops::NormKind::kRms, c.norm_eps, c.hidden, norm_offset));
  const char* head = c.tied_head && !binder.has("output") ? "token_embd" : "output";
  TRY_ASSIGN(ends.head, binder.linear({{head, c.vocab_size}}, c.hidden));
  return ends;
}

void write_logits(ExecContext& ctx, const Ends& ends, const Batch& batch, const Tensor& x,
                  const Outputs& outputs) {
  const Tensor rows = ctx.residual(batch.sizes.num_logits, x.cols);
  ops::gather_logit_rows(ctx, batch, x, rows);
  ops::norm_linear(ctx, ends.norm, ends.head, rows, outputs.logits);
}

Result<ops::Rope> bind_rope(WeightBinder& binder, const DecoderConfig& c, ops::RopePairing pairing,
                            const ModelOptions& options) {
  ops::Rope rope = ops::make_rope(pairing, static_cast<int>(c.head_dim),
                                  static_cast<int>(c.rotary_dim), c.rope.base);
  TRY_ASSIGN(const RopeConfig scaling, with_tensors(binder, c.rope, c.rotary_dim / 2));
  switch (scaling.scaling) {
    case Scaling::kNone:
      break;
    case Scaling::kLinear:
      ops::scale_rope_linear(rope, scaling.factor);
      break;
    case Scaling::kLlama3:
      ops::scale_rope_llama3(rope, {scaling.factor, scaling.low_freq_factor,
                                    scaling.high_freq_factor, scaling.original_length});
      break;
    case Scaling::kYarn:
      ops::scale_rope_yarn(rope, {scaling.base, scaling.factor, scaling.original_length,
                                  scaling.beta_fast, scaling.beta_slow, scaling.truncate});
      break;
    case Scaling::kLongrope:
      TRY(scale_longrope(rope, scaling,
                         options.max_model_len == 0 ? c.context_length : options.max_model_len));
      break;
  }
  if (binder.format() == ModelFormat::kGguf && binder.has("rope_freqs")) {
    TRY_ASSIGN(const std::vector<float> factors, binder.factors("rope_freqs", c.rotary_dim / 2));
    ops::scale_rope_pairs(rope, factors);
  }
  rope.magnitude = static_cast<float>(magnitude(scaling) * scaling.extra_magnitude);
  return rope;
}

Qkv make_qkv(ExecContext& ctx, const DecoderConfig& c, int64_t tokens) {
  Qkv qkv;
  qkv.all = ctx.tensor(tokens, c.q_width() + 2 * c.kv_width());
  qkv.q = qkv.all.columns(0, c.q_width());
  qkv.k = qkv.all.columns(c.q_width(), c.kv_width());
  qkv.v = qkv.all.columns(c.q_width() + c.kv_width(), c.kv_width());
  return qkv;
}

Result<ops::Linear> bind_qkv(WeightBinder& binder, const std::string& at, const DecoderConfig& c,
                             bool bias) {
  return binder.linear(
      {{at + "attn_q", c.q_width()}, {at + "attn_k", c.kv_width()}, {at + "attn_v", c.kv_width()}},
      c.hidden, bias);
}

Result<ops::Linear> bind_gate_up(WeightBinder& binder, const std::string& at,
                                 const DecoderConfig& c, bool bias) {
  return binder.linear({{at + "ffn_gate", c.ffn}, {at + "ffn_up", c.ffn}}, c.hidden, bias);
}

ops::AttentionParams attention_params(const DecoderConfig& c) {
  return {static_cast<int>(c.heads), c.attention_scale, 0};
}

void PlainDecoder::forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const {
  const DecoderConfig& c = config;
  const int64_t tokens = batch.sizes.num_tokens;
  const Tensor x = ctx.residual(tokens, c.hidden);
  ops::embedding(ctx, ends.embedding, batch, 1, x);
  for (int i = 0; i < static_cast<int>(c.layers); ++i) {
    const PlainLayer& layer = layers[static_cast<size_t>(i)];
    const LayerScope scope(ctx, i);

    const Qkv qkv = make_qkv(ctx, c, tokens);
    const Tensor mixed = ctx.tensor(tokens, c.q_width());
    ops::norm_linear(ctx, layer.attention_norm, layer.qkv, x, qkv.all);
    ops::rope_kv_write(ctx, rope, batch, {0, i}, qkv.q, qkv.k, qkv.v);
    ops::attention(ctx, attention_params(c), batch, {0, i}, qkv.q, mixed);
    ops::linear_add(ctx, layer.output, mixed, x);

    const Tensor gated = ctx.tensor(tokens, c.ffn);
    ops::norm_linear_gated(ctx, layer.ffn_norm, layer.gate_up, ops::Gate::kSilu, x, gated);
    ops::linear_add(ctx, layer.down, gated, x);
  }
  write_logits(ctx, ends, batch, x, outputs);
}

}  // namespace tinyvllm
