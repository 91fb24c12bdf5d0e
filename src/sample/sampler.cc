#include "sample/sampler.h"

#include "sample/reference/sample_row.h"

namespace tinyvllm {

void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out) {
  CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size() << " tokens";
  if (ctx.dry_run) return;
  // The reference serves the CPU too: one pass or three over a row are microseconds beside a step.
  ctx.pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t row, int) {
    const auto i = static_cast<size_t>(row);
    out[i] = reference::sample_row(logits.f32() + rows[i].logit_row * logits.stride, logits.cols,
                                   rows[i]);
  });
}

}  // namespace tinyvllm
