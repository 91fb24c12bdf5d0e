#include "ops/softmax.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops {
namespace {

double elements(const Tensor& x) {
  return static_cast<double>(x.rows) * static_cast<double>(x.cols);
}

}  // namespace

void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == y.cols && x.dtype == DType::kF32 && y.dtype == DType::kF32)
      << "softmax from [" << x.rows << ", " << x.cols << "] to [" << y.rows << ", " << y.cols
      << "]";
  const OpScope scope(ctx, [&] {
    return OpCall{.op = "softmax",
                  .rows = x.rows,
                  .out = y.cols,
                  .in = x.cols,
                  .bytes = 2 * bytes_of(x),
                  .flops = 4 * elements(x)};
  });
  if (ctx.device.kind() == DeviceKind::kCuda) {
    if (!ctx.dry_run) cuda::softmax(ctx, x, y);
  } else {
    cpu::softmax(ctx, x, y);
  }
}

void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best) {
  CHECK(k >= 0 && static_cast<int64_t>(best.size()) == x.rows * k)
      << k << " of each of " << x.rows << " rows into " << best.size();
  const OpScope scope(ctx, [&] {
    return OpCall{.op = "top_k",
                  .rows = x.rows,
                  .out = k,
                  .in = x.cols,
                  .bytes = bytes_of(x),
                  .flops = elements(x)};
  });
  if (ctx.device.kind() == DeviceKind::kCuda) {
    cuda::top_k(ctx, x, k, best);
  } else if (!ctx.dry_run) {
    cpu::top_k(ctx, x, k, best);
  }
}

}  // namespace tinyvllm::ops
