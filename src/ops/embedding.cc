#include "ops/embedding.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops {

Result<Embedding> make_embedding(Device& device, const TensorView& table) {
  if (table.shape.rank != 2) {
    return error("embedding: expected [vocabulary, width], found ", to_string(table.shape));
  }
  if (!reference::can_dequantize(table.dtype)) {
    return error("embedding: type ", dtype_name(table.dtype), " is not one this build reads");
  }
  if (device.kind() == DeviceKind::kCuda) return cuda::make_embedding(device, table);
  return Embedding{table, nullptr};
}

void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x) {
  CHECK(x.dtype == DType::kF32 && x.rows == batch.sizes.num_tokens && x.cols == e.table.shape[1])
      << "embedding of " << batch.sizes.num_tokens << " tokens, width " << e.table.shape[1]
      << ", into [" << x.rows << ", " << x.cols << "]";
  const PartScope part(ctx.trace, TraceLevel::kOp, "generation_loop", "embedding");
  const OpScope scope(
      ctx,
      [&] {
        const double read = static_cast<double>(row_bytes(e.table.dtype, x.cols));
        return OpCall{.op = "embedding",
                      .dtype = e.table.dtype,
                      .rows = x.rows,
                      .out = x.cols,
                      .in = e.table.shape[0],
                      .bytes = read * static_cast<double>(x.rows) + bytes_of(x)};
      },
      &x);
  if (ctx.dry_run) return;
  if (ctx.device.kind() == DeviceKind::kCuda) {
    cuda::embedding(ctx, e, batch, scale, x);
  } else {
    cpu::embedding(ctx, e, batch, scale, x);
  }
}

void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y) {
  CHECK(x.rows == batch.sizes.num_tokens && y.rows == batch.sizes.num_logits && x.cols == y.cols &&
        x.dtype == y.dtype)
      << batch.sizes.num_logits << " of " << batch.sizes.num_tokens << " rows from [" << x.rows
      << ", " << x.cols << "] to [" << y.rows << ", " << y.cols << "]";
  const OpScope scope(ctx, [&] {
    return OpCall{
        .op = "gather", .rows = y.rows, .out = y.cols, .in = x.cols, .bytes = 2 * bytes_of(y)};
  });
  if (ctx.dry_run) return;
  if (ctx.device.kind() == DeviceKind::kCuda) {
    cuda::gather_logit_rows(ctx, batch, x, y);
  } else {
    cpu::gather_logit_rows(ctx, batch, x, y);
  }
}

}  // namespace tinyvllm::ops
