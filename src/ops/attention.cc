#include "ops/attention.h"

#include <algorithm>

#include "ops/cpu/kv_layout.h"
#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops {
namespace {

// Each sequence's K and V are read once, however many of its tokens ask; a token multiplies with
// what it sees.
OpCall describe(const AttentionParams& params, const Batch& on_device, const KvSpec& spec,
                const Tensor& q, const Tensor& y) {
  const Batch batch{on_device.sizes, on_device.host};
  double read = 0;
  double seen = 0;
  for (int s = 0; s < batch.sizes.num_sequences; ++s) {
    const int begin = batch.query_offsets()[s];
    const int end = batch.query_offsets()[s + 1];
    if (begin == end) continue;
    const auto window = [&](int position) {
      return spec.window > 0 ? std::min(position + 1, spec.window) : position + 1;
    };
    read += window(batch.positions()[begin]) + (end - begin - 1);
    for (int t = begin; t < end; ++t) seen += window(batch.positions()[t]);
  }
  const double width = spec.k_dim + spec.v_dim;
  return OpCall{
      .op = "attention",
      .dtype = spec.dtype,
      .rows = q.rows,
      .out = y.cols,
      .in = static_cast<int64_t>(seen),
      .bytes = read * static_cast<double>(kv_token_bytes(spec)) + bytes_of(q) + bytes_of(y),
      .flops = 2 * seen * params.heads * width};
}

}  // namespace

void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y) {
  const KvSpec& spec = ctx.kv[static_cast<size_t>(layer.group)].spec;
  CHECK(params.heads % spec.kv_heads == 0) << params.heads << " heads over " << spec.kv_heads;
  CHECK(q.rows == batch.sizes.num_tokens && y.rows == q.rows &&
        q.cols == params.heads * spec.k_dim && y.cols == params.heads * spec.v_dim)
      << params.heads << " heads from [" << q.rows << ", " << q.cols << "] to [" << y.rows << ", "
      << y.cols << "]";
  const bool on_card = ctx.device.kind() == DeviceKind::kCuda;
  const OpScope scope(
      ctx,
      [&] {
        OpCall call = describe(params, batch, spec, q, y);
        if (on_card) call.reason = cuda::attention_reason(ctx, params, batch, layer, q);
        return call;
      },
      &y);
  if (on_card) {
    cuda::attention(ctx, params, batch, layer, q, y);
  } else {
    cpu::attention(ctx, params, batch, layer, q, y);
  }
}

Status check_heads(const Device& device, const KvSpec& spec) {
  if (device.kind() != DeviceKind::kCuda) return Status();
  const int widest = std::max(spec.k_dim, spec.v_dim);
  const int most = cuda::widest_head(spec.dtype);
  if (widest <= most) return Status();
  return error("heads of ", widest, " have no kernel on ", device.name(), " with a KV cache of ",
               dtype_name(spec.dtype), ", which has them up to ", most);
}

size_t kv_block_bytes(const KvSpec& spec, int block_size) {
  return cpu::KvLayout(spec, block_size).block_bytes();
}

}  // namespace tinyvllm::ops
