// Rows go to threads in chunks; one row is always one thread's.
#include <algorithm>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

// Fewer elements than this are done before another thread has woken up.
constexpr int64_t kElementsPerTask = 8192;

template <class Row>
void for_each_row(ExecContext& ctx, int64_t rows, int64_t width, Row&& row) {
  const int64_t chunk = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, width));
  ctx.pool.parallel_for((rows + chunk - 1) / chunk, [&](int64_t task, int thread) {
    const int64_t end = std::min(rows, (task + 1) * chunk);
    for (int64_t r = task * chunk; r < end; ++r) row(r, thread);
  });
}

}  // namespace

void norm_row(const ExecContext& ctx, const Norm& norm, const float* x, float* y) {
  const Kernels& k = kernels(ctx.device);
  const auto* weight = static_cast<const float*>(norm.weight.data());
  const auto* bias = static_cast<const float*>(norm.bias.data());
  if (norm.kind == NormKind::kRms) {
    k.rms_norm(x, weight, norm.eps, norm.width, y);
  } else {
    k.layer_norm(x, weight, bias, norm.eps, norm.width, y);
  }
}

void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y) {
  for_each_row(ctx, x.rows, x.cols, [&](int64_t r, int) {
    norm_row(ctx, norm, x.f32() + r * x.stride, y.f32() + r * y.stride);
  });
}

void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x) {
  const ArenaScope scope(ctx.arena);
  const Tensor scratch = ctx.tensor(ctx.pool.size(), x.cols);
  if (ctx.dry_run) return;
  for_each_row(ctx, x.rows, x.cols, [&](int64_t r, int thread) {
    float* normed = scratch.f32() + thread * scratch.stride;
    float* sum = x.f32() + r * x.stride;
    norm_row(ctx, norm, y.f32() + r * y.stride, normed);
    for (int64_t i = 0; i < x.cols; ++i) sum[i] += normed[i];
  });
}

void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x) {
  for_each_row(ctx, x.rows, x.cols, [&](int64_t r, int) {
    float* row = x.f32() + r * x.stride;
    for (int64_t h = 0; h < x.cols; h += norm.width) norm_row(ctx, norm, row + h, row + h);
  });
}

}  // namespace tinyvllm::ops::cpu
