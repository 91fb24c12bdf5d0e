#include "sample/sampler.h"

#include "sample/arithmetic.h"
#include "sample/reference/sample_row.h"

namespace tinyvllm {
namespace {

const float* row_of(const Tensor& logits, int64_t row) {
  CHECK(row >= 0 && row < logits.rows) << "row " << row << " of " << logits.rows;
  return logits.f32() + row * logits.stride;
}

void check(const SampleRow& row) {
  CHECK(row.params->temperature == 0 || row.params->seed)
      << "a request without a seed gets one before it is sampled";
  CHECK(row.history.size() == row.position || !needs_history(*row.params))
      << "position " << row.position << " after " << row.history.size() << " tokens";
}

}  // namespace

bool needs_history(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0 || uses_dry(params) || !params.bad_words_token_ids.empty();
}

void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out) {
  CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size();
  if (ctx.dry_run) return;
  ctx.pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t task, int) {
    const SampleRow& row = rows[static_cast<size_t>(task)];
    check(row);
    out[static_cast<size_t>(task)] =
        reference::sample_row(row_of(logits, row.logit_row), logits.cols, row);
  });
}

void score(ExecContext& ctx, const Tensor& logits, std::span<const ScoreRow> rows,
           std::span<SampleOutput> out) {
  CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size();
  if (ctx.dry_run) return;
  ctx.pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t task, int) {
    const ScoreRow& row = rows[static_cast<size_t>(task)];
    CHECK(row.token >= 0 && row.token < logits.cols)
        << "token " << row.token << " of " << logits.cols;
    out[static_cast<size_t>(task)] =
        reference::score_row(row_of(logits, row.logit_row), logits.cols, row);
  });
}

}  // namespace tinyvllm
