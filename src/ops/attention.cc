#include "ops/attention.h"

#include "ops/cpu/kv_layout.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops {

void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y) {
  const KvSpec& spec = ctx.kv[static_cast<size_t>(layer.group)].spec;
  CHECK(params.heads % spec.kv_heads == 0) << params.heads << " heads over " << spec.kv_heads;
  CHECK(q.rows == batch.sizes.num_tokens && y.rows == q.rows &&
        q.cols == params.heads * spec.k_dim && y.cols == params.heads * spec.v_dim)
      << params.heads << " heads from [" << q.rows << ", " << q.cols << "] to [" << y.rows << ", "
      << y.cols << "]";
  cpu::attention(ctx, params, batch, layer, q, y);
}

size_t kv_block_bytes(const KvSpec& spec, int block_size) {
  return cpu::KvLayout(spec, block_size).block_bytes();
}

}  // namespace tinyvllm::ops
