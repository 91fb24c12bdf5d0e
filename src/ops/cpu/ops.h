// The CPU's side of every op, one file each. Shapes were checked by the op's own file; these divide
// the work among threads and call the kernels of the device's instruction set.
#pragma once

#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/epilogue.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "ops/rope.h"
#include "ops/softmax.h"

namespace tinyvllm::ops::cpu {

void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y);
void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x);
void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x);
void norm_row(const ExecContext& ctx, const Norm& norm, const float* x, float* y);

void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x);
void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y);

Result<Linear> make_linear(Device& device, ThreadPool& pool, const LinearParts& parts);
void linear(ExecContext& ctx, const Norm* norm, const Linear& w, Epilogue epilogue, const Tensor& x,
            const Tensor& y);

void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v);
void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y);

void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y);
void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best);

void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y);

}  // namespace tinyvllm::ops::cpu
