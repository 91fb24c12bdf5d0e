#include "sample/sampler.h"

#include "ops/op_scope.h"
#include "sample/arithmetic.h"
#include "sample/cpu/kernel_table.h"
#include "sample/cpu/sample_row.h"

namespace tinyvllm {
namespace {

// Rows of one call, shared out to the threads, each with a piece of the arena.
class CpuRows {
 public:
  CpuRows(ExecContext& ctx, const Tensor& logits) : ctx_(ctx), logits_(logits), scope_(ctx.arena) {
    CHECK(ctx.device.kind() == DeviceKind::kCpu) << "sampling on " << ctx.device.name();
    CHECK(logits.dtype == DType::kF32 && logits.cols > 0)
        << "logits of " << logits.cols << " columns in " << dtype_name(logits.dtype);
    bytes_ = cpu_sampler::Scratch::bytes(logits.cols);
    memory_ = static_cast<char*>(ctx.arena.take(bytes_ * static_cast<size_t>(ctx.pool.size())));
  }

  // out[i] = choose(kernels, logits of rows[i], rows[i], scratch) for all rows.
  template <class Row, class Choose>
  void run(std::span<const Row> rows, std::span<SampleOutput> out, Choose choose) {
    CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size();
    if (ctx_.dry_run || rows.empty()) return;
    // One look at each logit; the head has just written them, so they come from a cache.
    const ops::OpScope scope(ctx_, [&] {
      const auto count = static_cast<int64_t>(rows.size());
      return OpCall{.op = "sample",
                    .rows = count,
                    .out = 1,
                    .in = logits_.cols,
                    .flops = static_cast<double>(count * logits_.cols)};
    });
    const auto& kernels = cpu_sampler::kernels(static_cast<CpuDevice&>(ctx_.device).isa());
    ctx_.pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t task, int thread) {
      const Row& row = rows[static_cast<size_t>(task)];
      CHECK(row.logit_row >= 0 && row.logit_row < logits_.rows)
          << "row " << row.logit_row << " of " << logits_.rows;
      cpu_sampler::Scratch scratch(memory_ + bytes_ * static_cast<size_t>(thread), logits_.cols);
      out[static_cast<size_t>(task)] =
          choose(kernels, logits_.f32() + row.logit_row * logits_.stride, row, scratch);
    });
  }

 private:
  ExecContext& ctx_;
  const Tensor& logits_;
  const ArenaScope scope_;
  size_t bytes_;
  char* memory_;
};

}  // namespace

bool needs_history(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0 || uses_dry(params) || !params.bad_words_token_ids.empty();
}

void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out) {
  CpuRows(ctx, logits)
      .run(rows, out,
           [](const auto& kernels, const float* from, const SampleRow& row, auto& scratch) {
             CHECK(row.params->temperature == 0 || row.params->seed)
                 << "a request without a seed gets one before it is sampled";
             CHECK(row.history.size() == row.position || !needs_history(*row.params))
                 << "position " << row.position << " after " << row.history.size() << " tokens";
             return cpu_sampler::sample_row(kernels, from, row, scratch);
           });
}

void score(ExecContext& ctx, const Tensor& logits, std::span<const ScoreRow> rows,
           std::span<SampleOutput> out) {
  CpuRows(ctx, logits)
      .run(rows, out,
           [&](const auto& kernels, const float* from, const ScoreRow& row, auto& scratch) {
             CHECK(row.token >= 0 && row.token < logits.cols)
                 << "token " << row.token << " of " << logits.cols;
             return cpu_sampler::score_row(kernels, from, row, scratch);
           });
}

}  // namespace tinyvllm
