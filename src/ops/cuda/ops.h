// The card's side of every op: shapes were checked by the op's own file; these take scratch from
// the arena and enqueue kernels. no_cuda/ has the same functions for a build without CUDA.
#pragma once

#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/epilogue.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "ops/rope.h"
#include "ops/softmax.h"

namespace tinyvllm::ops::cuda {

void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y);
void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x);
void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x);

Result<const void*> first_not_finite(Device& device);

Result<Embedding> make_embedding(Device& device, const TensorView& table);
void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x);
void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y);

void load_weight_kernels();
Status expect_weights(Device& device, std::span<const TensorView> weights);
Result<Linear> make_linear(Device& device, const LinearParts& parts);
const char* linear_reason(const ExecContext& ctx, const Linear& w, const Tensor& x);
void linear(ExecContext& ctx, const Norm* norm, const Linear& w, Epilogue epilogue, const Tensor& x,
            const Tensor& y);

int widest_head(DType cache);
void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v);
const char* attention_reason(const ExecContext& ctx, const AttentionParams& params,
                             const Batch& batch, const KvLayer& layer, const Tensor& q);
void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y);
void copy_kv_block(ExecContext& ctx, char* to, const char* from, size_t bytes);

void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y);
void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best);

Status prepare_experts(Device& device, Experts& experts);
void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y);

}  // namespace tinyvllm::ops::cuda
