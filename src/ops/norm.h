// Normalisation of rows: RMSNorm  y = x / sqrt(mean(x²) + eps) · w,  LayerNorm with mean and bias.
#pragma once

#include "base/result.h"
#include "core/batch.h"
#include "device/exec_context.h"

namespace tinyvllm::ops {

enum class NormKind { kRms, kLayer };

// Weights of a norm: small, so F32 on whatever device.
struct Norm {
  NormKind kind = NormKind::kRms;
  float eps = 1e-5f;
  int64_t width = 0;
  Buffer weight;  // [width]
  Buffer bias;    // [width], or empty
};

// `offset` is added to every weight: 1 for models that store w - 1 (Gemma's HF files).
Result<Norm> make_norm(Device& device, NormKind kind, float eps, const TensorView& weight,
                       const TensorView* bias, float offset = 0);

// y = norm(x), row by row.  x, y: [tokens, width]
void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y);

// x += norm(y): for models that normalise what a block adds.
void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x);

// Each head of each row normalised on its own, in place.  x: [tokens, heads · width]
void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x);

}  // namespace tinyvllm::ops
