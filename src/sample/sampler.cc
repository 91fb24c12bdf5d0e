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

bool on_card(const Device& device) { return device.kind() == DeviceKind::kCuda; }

const cpu_sampler::Kernels& host_kernels(Device& device) {
  return cpu_sampler::kernels(on_card(device) ? supported_isas().back()
                                              : static_cast<CpuDevice&>(device).isa());
}

// out[i] = choose(kernels, from(i), rows[i], scratch) for all rows, shared out to the threads, each
// with a piece of the scratch memory.
template <class Row, class From, class Choose>
void choose_all(ThreadPool& pool, const cpu_sampler::Kernels& kernels, int64_t width, char* memory,
                std::span<const Row> rows, From from, std::span<SampleOutput> out, Choose choose) {
  const size_t bytes = cpu_sampler::Scratch::bytes(width);
  pool.parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t task, int thread) {
    const auto i = static_cast<size_t>(task);
    cpu_sampler::Scratch scratch(memory + bytes * static_cast<size_t>(thread), width);
    out[i] = choose(kernels, from(i), rows[i], scratch);
  });
}

// A card's logits of these rows, one behind the other; neighbours are brought in one piece.
template <class Row>
std::vector<float> fetch(Device& device, const Tensor& logits, std::span<const Row> rows) {
  const auto width = static_cast<size_t>(logits.cols);
  std::vector<float> values(rows.size() * width);
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    const int64_t first = rows[begin].logit_row;
    do end += 1;
    while (end < rows.size() && logits.stride == logits.cols &&
           rows[end].logit_row == first + static_cast<int64_t>(end - begin));
    const Status done =
        device.download(values.data() + begin * width, logits.f32() + first * logits.stride,
                        (end - begin) * width * sizeof(float));
    if (!done.ok()) break;  // the step fails with its device
  }
  return values;
}

// On the host, wherever the logits are.
template <class Row, class Choose>
void choose_on_host(ExecContext& ctx, const Tensor& logits, std::span<const Row> rows,
                    std::span<SampleOutput> out, Choose choose) {
  CHECK(logits.dtype == DType::kF32 && logits.cols > 0)
      << "logits of " << logits.cols << " columns in " << dtype_name(logits.dtype);
  CHECK(rows.size() == out.size()) << rows.size() << " rows, room for " << out.size();
  const bool fetches = on_card(ctx.device);
  const ArenaScope scope(ctx.arena);
  const size_t bytes =
      cpu_sampler::Scratch::bytes(logits.cols) * static_cast<size_t>(ctx.pool.size());
  char* memory = fetches ? nullptr : static_cast<char*>(ctx.arena.take(bytes));
  if (ctx.dry_run || rows.empty()) return;
  const ops::OpScope watch(ctx, [&] { return describe(rows.size(), logits); });
  for (const Row& row : rows) {
    CHECK(row.logit_row >= 0 && row.logit_row < logits.rows)
        << "row " << row.logit_row << " of " << logits.rows;
  }
  std::vector<char> own;  // beside a card, whose arena is not ours to write
  std::vector<float> fetched;
  if (fetches) {
    fetched = fetch(ctx.device, logits, rows);
    own.resize(bytes);
    memory = own.data();
  }
  const auto from = [&](size_t i) {
    return fetches ? fetched.data() + static_cast<int64_t>(i) * logits.cols
                   : logits.f32() + rows[i].logit_row * logits.stride;
  };
  choose_all(ctx.pool, host_kernels(ctx.device), logits.cols, memory, rows, from, out, choose);
}

SampleOutput choose_token(const cpu_sampler::Kernels& kernels, const float* logits,
                          const SampleRow& row, cpu_sampler::Scratch& scratch) {
  CHECK(row.params->temperature == 0 || row.params->seed)
      << "a request without a seed gets one before it is sampled";
  CHECK(row.history.size() == row.position || !needs_history(*row.params))
      << "position " << row.position << " after " << row.history.size() << " tokens";
  return cpu_sampler::sample_row(kernels, logits, row, scratch);
}

// The largest logit and nothing else: what a card finds by itself.
bool is_plain_greedy(const SampleRow& row) {
  const SamplingParams& p = *row.params;
  return p.temperature == 0 && !needs_history(p) && p.logit_bias.empty() && !p.logprobs &&
         !p.allowed_token_ids && p.min_tokens == 0;
}

}  // namespace

bool needs_history(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0 || uses_dry(params) || !params.bad_words_token_ids.empty();
}

void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out) {
  choose_on_host(ctx, logits, rows, out, choose_token);
}

Sampler::Sampler(Runtime& runtime, int max_rows, int64_t width)
    : runtime_(runtime), max_rows_(static_cast<size_t>(max_rows)), width_(width) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::create(Runtime& runtime, int max_rows, int64_t width) {
  std::unique_ptr<Sampler> sampler(new Sampler(runtime, max_rows, width));
  if (on_card(runtime.device())) {
    TRY_ASSIGN(sampler->tokens_, cuda_sampler::Tokens::create(runtime.device(), max_rows, width));
    sampler->packed_ = std::make_unique<block_sampler::PackedRows>();
  }
  return sampler;
}

bool Sampler::chooses_on_device(const SamplingParams& params) const {
  return tokens_ == nullptr || block_sampler::supports(params, width_);
}

size_t Sampler::input_bytes(size_t history) const {
  if (tokens_ == nullptr) return 0;
  return max_rows_ * sizeof(block_sampler::DeviceRow) + history * sizeof(int32_t);
}

// A card is told nothing when it is to choose the largest of each row, in their order, as for a
// decode step. Rows of the host's it chooses for, too, as if they were plain, so that the others'
// tokens lie in their places.
void Sampler::add_inputs(std::span<const SampleRow> rows, std::vector<int32_t>& inputs) {
  static const SamplingParams kPlain = [] {
    SamplingParams params;
    params.temperature = 0;
    return params;
  }();
  added_.reset();
  if (tokens_ == nullptr) return;
  std::vector<SampleRow> own(rows.begin(), rows.end());
  bool is_plain = true;
  bool in_order = true;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!chooses_on_device(*own[i].params)) own[i].params = &kPlain;
    is_plain = is_plain && is_plain_greedy(own[i]);
    in_order = in_order && own[i].logit_row == static_cast<int64_t>(i);
  }
  is_packed_ = !is_plain;
  if (is_plain && in_order) return;
  inputs.resize((inputs.size() + 1) / 2 * 2);  // packed rows have numbers of 8 bytes
  added_ = inputs.size();
  if (is_packed_) {
    packed_->pack(own, width_);
    inputs.insert(inputs.end(), packed_->words().begin(), packed_->words().end());
  } else {
    for (const SampleRow& row : own) inputs.push_back(static_cast<int32_t>(row.logit_row));
  }
}

void Sampler::submit(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
                     const int32_t* inputs) {
  const ArenaScope scope(ctx.arena);
  if (ctx.dry_run) {
    if (tokens_ != nullptr) {
      ctx.arena.take(block_sampler::scratch_bytes(static_cast<int64_t>(rows.size()), logits.cols));
    } else {
      std::vector<SampleOutput> outputs(rows.size());
      sample(ctx, logits, rows, outputs);
    }
    return;
  }
  Step step;
  step.outputs.resize(rows.size());
  if (tokens_ != nullptr && !rows.empty()) {
    const ops::OpScope watch(ctx, [&] { return describe(rows.size(), logits); });
    step.failure = submit_to_card(ctx, logits, rows, inputs, step);
    step.pending = step.failure.ok();
  } else {
    sample(ctx, logits, rows, step.outputs);
  }
  steps_.push_back(std::move(step));
}

Status Sampler::submit_to_card(ExecContext& ctx, const Tensor& logits,
                               std::span<const SampleRow> rows, const int32_t* inputs, Step& step) {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> brought;
  bool looks_back = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SampleRow& row = rows[i];
    const bool is_cards = chooses_on_device(*row.params);
    step.logprobs.push_back(is_cards ? row.params->logprobs : std::nullopt);
    looks_back = looks_back || row.in_flight >= 0;
    if (is_cards) continue;
    CHECK(row.in_flight < 0) << "the host chooses, and does not know the token before";
    brought.push_back(row.logit_row);
    step.host_rows.push_back({row,
                              *row.params,
                              {row.history.begin(), row.history.end()},
                              {row.end_ids.begin(), row.end_ids.end()},
                              i});
  }
  TRY(tokens_->bring(logits, brought));
  const int32_t* const own = added_ ? inputs + *added_ : nullptr;
  if (is_packed_) {
    void* scratch = ctx.arena.take(block_sampler::scratch_bytes(count, logits.cols));
    tokens_->sample(logits, reinterpret_cast<const block_sampler::DeviceRow*>(own), count,
                    looks_back, scratch, packed_->wants_scores());
  } else {
    tokens_->choose_largest(logits, own, count);
  }
  return Status();
}

Status Sampler::receive(Step& step) {
  step.pending = false;
  TRY_ASSIGN(const cuda_sampler::Tokens::Choice choice, tokens_->collect());
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    SamplingParams wanted;
    wanted.logprobs = step.logprobs[i];
    SampleRow row;
    row.params = &wanted;
    step.outputs[i] = block_sampler::unpack(row, choice.tokens[i],
                                            choice.scores == nullptr ? nullptr : choice.scores + i);
  }
  if (!step.host_rows.empty()) choose_here(step, choice.logits);
  return Status();
}

void Sampler::choose_here(Step& step, const float* logits) {
  std::vector<SampleRow> rows;
  for (HostRow& own : step.host_rows) {
    own.row.params = &own.params;
    own.row.history = own.history;
    own.row.end_ids = own.end_ids;
    rows.push_back(own.row);
  }
  std::vector<SampleOutput> chosen(rows.size());
  const std::scoped_lock turn(runtime_.turn());
  ThreadPool& pool = runtime_.pool();
  const size_t bytes = cpu_sampler::Scratch::bytes(width_) * static_cast<size_t>(pool.size());
  if (scratch_ == nullptr) scratch_ = std::make_unique_for_overwrite<char[]>(bytes);
  const auto from = [&](size_t i) { return logits + static_cast<int64_t>(i) * width_; };
  choose_all(pool, host_kernels(runtime_.device()), width_, scratch_.get(),
             std::span<const SampleRow>(rows), from, chosen, choose_token);
  for (size_t i = 0; i < chosen.size(); ++i) {
    step.outputs[step.host_rows[i].index] = std::move(chosen[i]);
  }
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
  choose_on_host(ctx, logits, rows, out,
                 [&](const auto& kernels, const float* from, const ScoreRow& row, auto& scratch) {
                   CHECK(row.token >= 0 && row.token < logits.cols)
                       << "token " << row.token << " of " << logits.cols;
                   return cpu_sampler::score_row(kernels, from, row, scratch);
                 });
}

}  // namespace tinyvllm
