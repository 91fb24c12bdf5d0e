// Norms, embedding, softmax: ops on rows, each one kernel.
#include "ops/cuda/host.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops::cuda {

void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y) {
  norm_rows(norm_args(&norm), rows(x), rows(y), false, stream_of(ctx));
}

void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x) {
  norm_rows(norm_args(&norm), rows(y), rows(x), true, stream_of(ctx));
}

void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x) {
  norm_heads(norm_args(&norm), static_cast<int>(norm.width), rows(x), stream_of(ctx));
}

Result<Embedding> make_embedding(Device& device, const TensorView& table) {
  auto on_device = std::make_shared<Matrix>();
  TRY_ASSIGN(*on_device, upload_matrix(device, table));
  return Embedding{table, std::move(on_device)};
}

void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x) {
  const auto& matrix = *static_cast<const Matrix*>(e.on_device.get());
  embed(matrix.packed, batch.token_ids(), batch.previous, scale, rows(x), stream_of(ctx));
}

void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y) {
  gather_rows(batch.logit_rows(), rows(x), rows(y), stream_of(ctx));
}

void copy_kv_block(ExecContext& ctx, char* to, const char* from, size_t bytes) {
  copy(to, from, bytes, stream_of(ctx));
}

void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y) {
  softmax_rows(rows(x), rows(y), stream_of(ctx));
}

void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best) {
  const ArenaScope scope(ctx.arena);
  const size_t count = best.size();
  auto* ids = static_cast<int32_t*>(ctx.arena.take(count * sizeof(int32_t)));
  auto* values = static_cast<float*>(ctx.arena.take(count * sizeof(float)));
  if (ctx.dry_run || count == 0) return;
  top_k_rows(rows(x), k, ids, values, stream_of(ctx));
  std::vector<int32_t> host_ids(count);
  std::vector<float> host_values(count);
  const Status a = ctx.device.download(host_ids.data(), ids, count * sizeof(int32_t));
  const Status b = ctx.device.download(host_values.data(), values, count * sizeof(float));
  if (!a.ok() || !b.ok()) return;  // the step fails with its device
  for (size_t i = 0; i < count; ++i) best[i] = {host_ids[i], host_values[i]};
}

}  // namespace tinyvllm::ops::cuda
