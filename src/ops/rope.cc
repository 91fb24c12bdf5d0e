#include "ops/rope.h"

#include <cmath>

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops {

Rope make_rope(RopePairing pairing, int head_dim, int rotary_dim, double base) {
  CHECK(rotary_dim % 2 == 0 && rotary_dim <= head_dim) << rotary_dim << " of " << head_dim;
  Rope rope;
  rope.pairing = pairing;
  rope.head_dim = head_dim;
  rope.rotary_dim = rotary_dim;
  for (int i = 0; i < rotary_dim; i += 2) {
    rope.frequencies.push_back(
        static_cast<float>(std::pow(base, -static_cast<double>(i) / rotary_dim)));
  }
  return rope;
}

void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v) {
  const int tokens = batch.sizes.num_tokens;
  const KvSpec& spec = ctx.kv[static_cast<size_t>(layer.group)].spec;
  CHECK(spec.dtype == DType::kF16 || spec.dtype == DType::kF32 || spec.dtype == DType::kI8)
      << "a KV cache of " << dtype_name(spec.dtype);
  CHECK(rope.head_dim == spec.k_dim && q.cols % rope.head_dim == 0) << "heads of " << rope.head_dim;
  CHECK(q.rows == tokens && k.rows == tokens && v.rows == tokens &&
        k.cols == spec.kv_heads * spec.k_dim && v.cols == spec.kv_heads * spec.v_dim)
      << tokens << " tokens, k [" << k.rows << ", " << k.cols << "], v [" << v.rows << ", "
      << v.cols << "]";
  const OpScope scope(ctx, [&] {
    const double stored = static_cast<double>(kv_token_bytes(spec));
    return OpCall{
        .op = "rope_kv_write",
        .dtype = spec.dtype,
        .rows = tokens,
        .out = k.cols + v.cols,
        .in = q.cols + k.cols + v.cols,
        .bytes = 2 * bytes_of(q) + bytes_of(k) + bytes_of(v) + tokens * stored,
        .flops = 3.0 * static_cast<double>(tokens) * static_cast<double>(q.cols + k.cols)};
  });
  if (ctx.dry_run) return;
  if (ctx.device.kind() == DeviceKind::kCuda) {
    cuda::rope_kv_write(ctx, rope, batch, layer, q, k, v);
  } else {
    cpu::rope_kv_write(ctx, rope, batch, layer, q, k, v);
  }
}

}  // namespace tinyvllm::ops
