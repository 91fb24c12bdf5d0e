#include "sample/sampler.h"

#include <algorithm>

#include "ops/op_scope.h"
#include "sample/arithmetic.h"
#include "sample/block/pack.h"
#include "sample/cpu/kernel_table.h"
#include "sample/cpu/sample_row.h"
#include "sample/cuda/tokens.h"

namespace tinyvllm {
namespace {

// One look at each logit; the head has just written them, so they come from a cache.
OpCall describe(size_t rows, const Tensor& logits) {
  const auto count = static_cast<int64_t>(rows);
  return OpCall{.op = "sample",
                .rows = count,
                .out = 1,
                .in = logits.cols,
                .flops = static_cast<double>(count * logits.cols)};
}

// Rows of one call, shared out to the threads, each with a piece of scratch memory.
class CpuRows {
 public:
  CpuRows(ExecContext& ctx, const Tensor& logits) : ctx_(ctx), logits_(logits), scope_(ctx.arena) {
    CHECK(logits.dtype == DType::kF32 && logits.cols > 0)
        << "logits of " << logits.cols << " columns in " << dtype_name(logits.dtype);
    bytes_ = cpu_sampler::Scratch::bytes(logits.cols);
    const size_t all = bytes_ * static_cast<size_t>(ctx.pool.size());
    if (!on_card()) memory_ = static_cast<char*>(ctx.arena.take(all));
  }

  // out[i] = choose(kernels, logits of rows[i], rows[i], scratch) for all rows.
  template <class Row, class Choose>
  void run(std::span<const Row> rows, std::span<SampleOutput> out, Choose choose) {
    CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size();
    if (ctx_.dry_run || rows.empty()) return;
    const ops::OpScope scope(ctx_, [&] { return describe(rows.size(), logits_); });
    const auto& kernels = cpu_sampler::kernels(
        on_card() ? supported_isas().back() : static_cast<CpuDevice&>(ctx_.device).isa());
    const std::vector<float> fetched = on_card() ? fetch(rows) : std::vector<float>();
    if (on_card()) {
      own_.resize(bytes_ * static_cast<size_t>(ctx_.pool.size()));
      memory_ = own_.data();
    }
    ctx_.pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t task, int thread) {
      const Row& row = rows[static_cast<size_t>(task)];
      CHECK(row.logit_row >= 0 && row.logit_row < logits_.rows)
          << "row " << row.logit_row << " of " << logits_.rows;
      cpu_sampler::Scratch scratch(memory_ + bytes_ * static_cast<size_t>(thread), logits_.cols);
      const float* from = on_card() ? fetched.data() + task * logits_.cols
                                    : logits_.f32() + row.logit_row * logits_.stride;
      out[static_cast<size_t>(task)] = choose(kernels, from, row, scratch);
    });
  }

 private:
  bool on_card() const { return ctx_.device.kind() == DeviceKind::kCuda; }

  // A card's logits, brought here row by row.
  template <class Row>
  std::vector<float> fetch(std::span<const Row> rows) const {
    const auto width = static_cast<size_t>(logits_.cols);
    std::vector<float> values(rows.size() * width);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Status done = ctx_.device.download(values.data() + i * width,
                                               logits_.f32() + rows[i].logit_row * logits_.stride,
                                               width * sizeof(float));
      if (!done.ok()) break;  // the step fails with its device
    }
    return values;
  }

  ExecContext& ctx_;
  const Tensor& logits_;
  const ArenaScope scope_;
  size_t bytes_;
  char* memory_ = nullptr;
  std::vector<char> own_;  // beside a card, whose arena is not ours to write
};

// The largest logit and nothing else: what a card finds by itself.
bool is_plain_greedy(const SampleRow& row) {
  const SamplingParams& p = *row.params;
  return p.temperature == 0 && !needs_history(p) && p.logit_bias.empty() && !p.logprobs &&
         !p.allowed_token_ids && p.min_tokens == 0;
}

bool on_card(const ExecContext& ctx) { return ctx.device.kind() == DeviceKind::kCuda; }

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

Sampler::Sampler() = default;
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::create(Device& device, int max_rows, size_t max_history) {
  std::unique_ptr<Sampler> sampler(new Sampler());
  if (device.kind() == DeviceKind::kCuda) {
    TRY_ASSIGN(sampler->tokens_, cuda_sampler::Tokens::create(device, max_rows));
    sampler->packed_ = std::make_unique<block_sampler::PackedRows>();
    const size_t rows = static_cast<size_t>(max_rows) * sizeof(block_sampler::DeviceRow);
    TRY(device.reserve_stage(StageSlot::kSampling, rows + max_history * sizeof(int32_t)));
  }
  return sampler;
}

void Sampler::submit(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows) {
  const ArenaScope scope(ctx.arena);
  if (ctx.dry_run) {
    if (on_card(ctx)) {
      ctx.arena.take(block_sampler::scratch_bytes(static_cast<int64_t>(rows.size()), logits.cols));
    } else {
      std::vector<SampleOutput> outputs(rows.size());
      sample(ctx, logits, rows, outputs);
    }
    return;
  }
  Step step;
  step.outputs.resize(rows.size());
  const auto supported = [&](const SampleRow& row) {
    return block_sampler::supports(*row.params, logits.cols);
  };
  if (on_card(ctx) && !rows.empty() && std::all_of(rows.begin(), rows.end(), supported)) {
    for (const SampleRow& row : rows) step.logprobs.push_back(row.params->logprobs);
    const ops::OpScope watch(ctx, [&] { return describe(rows.size(), logits); });
    step.failure = submit_to_card(ctx, logits, rows);
    step.pending = step.failure.ok();
  } else {
    step.failure = sample_here(ctx, logits, rows, step.outputs);
  }
  steps_.push_back(std::move(step));
}

// On the host, which has to wait for tokens that its rows' histories lack.
Status Sampler::sample_here(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
                            std::span<SampleOutput> out) {
  const auto lacks = [](const SampleRow& row) { return row.in_flight >= 0; };
  if (std::none_of(rows.begin(), rows.end(), lacks)) {
    sample(ctx, logits, rows, out);
    return Status();
  }
  for (Step& earlier : steps_) {
    if (earlier.pending) earlier.failure = receive(earlier);
  }
  if (steps_.empty()) return error("the step before could not begin");
  TRY(steps_.back().failure);
  std::vector<SampleRow> whole(rows.begin(), rows.end());
  std::deque<std::vector<int32_t>> histories;
  for (SampleRow& row : whole) {
    if (row.in_flight < 0) continue;
    auto& history = histories.emplace_back(row.history.begin(), row.history.end());
    history.push_back(steps_.back().outputs[static_cast<size_t>(row.in_flight)].token);
    row.history = history;
  }
  sample(ctx, logits, whole, out);
  return Status();
}

Status Sampler::submit_to_card(ExecContext& ctx, const Tensor& logits,
                               std::span<const SampleRow> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  if (!std::all_of(rows.begin(), rows.end(), is_plain_greedy)) {
    packed_->pack(rows, logits.cols);
    TRY_ASSIGN(const void* const staged,
               ctx.device.stage(StageSlot::kSampling, packed_->data(), packed_->bytes()));
    void* scratch = ctx.arena.take(block_sampler::scratch_bytes(count, logits.cols));
    const bool looks_back = std::any_of(rows.begin(), rows.end(),
                                        [](const SampleRow& row) { return row.in_flight >= 0; });
    tokens_->sample(logits, static_cast<const block_sampler::DeviceRow*>(staged), count, looks_back,
                    scratch, packed_->wants_scores());
    return Status();
  }
  // A decode step's rows are its logits' rows; otherwise the card is told which.
  bool in_order = true;
  std::vector<int32_t> wanted;
  for (const SampleRow& row : rows) {
    in_order = in_order && row.logit_row == static_cast<int64_t>(wanted.size());
    wanted.push_back(static_cast<int32_t>(row.logit_row));
  }
  const void* which = nullptr;
  if (!in_order) {
    TRY_ASSIGN(which, ctx.device.stage(StageSlot::kSampling, wanted.data(),
                                       wanted.size() * sizeof(int32_t)));
  }
  tokens_->choose_largest(logits, static_cast<const int32_t*>(which), count);
  return Status();
}

Status Sampler::receive(Step& step) {
  step.pending = false;
  std::vector<int32_t> tokens(step.outputs.size());
  const block_sampler::Scores* scores = nullptr;
  TRY(tokens_->collect(tokens, &scores));
  for (size_t i = 0; i < tokens.size(); ++i) {
    SamplingParams wanted;
    wanted.logprobs = step.logprobs[i];
    SampleRow row;
    row.params = &wanted;
    step.outputs[i] =
        block_sampler::unpack(row, tokens[i], scores == nullptr ? nullptr : scores + i);
  }
  return Status();
}

const std::vector<SampleOutput>* Sampler::newest() const {
  return steps_.empty() || steps_.back().pending ? nullptr : &steps_.back().outputs;
}

const int32_t* Sampler::on_device() const {
  return tokens_ == nullptr ? nullptr : tokens_->on_device();
}

Result<std::vector<SampleOutput>> Sampler::collect() {
  CHECK(!steps_.empty()) << "no step was submitted";
  Step step = std::move(steps_.front());
  steps_.pop_front();
  if (step.pending) step.failure = receive(step);
  TRY(step.failure);
  return std::move(step.outputs);
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
