// One row of the table per token, read where the file's map has it.
#include <cstring>

#include "ops/cpu/ops.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int64_t kRowsPerTask = 16;

template <class Row>
void for_each_row(ExecContext& ctx, int64_t rows, Row&& row) {
  ctx.pool.parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (int64_t r = task * kRowsPerTask; r < end; ++r) row(r);
  });
}

}  // namespace

void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x) {
  const int32_t* ids = batch.token_ids();
  const size_t stride = row_bytes(e.table.dtype, x.cols);
  for_each_row(ctx, x.rows, [&](int64_t r) {
    CHECK(ids[r] >= 0 && ids[r] < e.table.shape[0])
        << "token " << ids[r] << " of a vocabulary of " << e.table.shape[0];
    float* row = x.f32() + r * x.stride;
    reference::dequantize(
        e.table.dtype,
        static_cast<const char*>(e.table.data) + static_cast<size_t>(ids[r]) * stride, x.cols, row);
    if (scale != 1) {
      for (int64_t i = 0; i < x.cols; ++i) row[i] *= scale;
    }
  });
}

void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y) {
  const int32_t* rows = batch.logit_rows();
  for_each_row(ctx, y.rows, [&](int64_t r) {
    CHECK(rows[r] >= 0 && rows[r] < x.rows) << "row " << rows[r] << " of " << x.rows;
    std::memcpy(y.f32() + r * y.stride, x.f32() + rows[r] * x.stride, row_bytes(y.dtype, y.cols));
  });
}

}  // namespace tinyvllm::ops::cpu
