#include "engine/model_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/step_clock.h"
#include "engine/warm_up.h"
#include "ops/attention.h"
#include "ops/kv_copy.h"

namespace tinyvllm {
namespace {

// Room for a step's inputs that is made at the start; a step with more of them makes more.
constexpr size_t kMostStaged = size_t{32} << 20;
constexpr size_t kMostHistory = kMostStaged / sizeof(int32_t);

}  // namespace

ModelRunner::ModelRunner(Runtime& runtime, const Model& model, const RunnerConfig& config)
    : runtime_(runtime),
      model_(model),
      backend_(runtime.tracer().intern(runtime.device().name())),
      builder_(static_cast<int>(model.info().kv_groups.size()), config.block_size),
      recorder_(runtime.device().make_recorder()) {
  for (const KvSpec& spec : model.info().kv_groups) {
    kv_.push_back(KvView{nullptr, spec, config.block_size, 0});
  }
}

ModelRunner::~ModelRunner() { runtime_.give_back(leased_); }

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(Runtime& runtime, const Model& model,
                                                         const RunnerConfig& config,
                                                         const SizeCache& size_cache) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner(runtime, model, config));
  const BatchSizes largest = runner->largest_step(config);
  TRY(runner->make_room(config, largest));
  const size_t activations = runner->measure_activations(largest);
  std::vector<int> num_blocks = config.num_blocks;
  if (size_cache) {
    TRY_ASSIGN(num_blocks, size_cache(activations));
  }
  TRY(runner->allocate(num_blocks, activations));
  if (!runtime.device().warms_up() || !runner->feeds_unseen({})) return runner;
  const int most = runner->largest_blocks_ * config.block_size;
  TRY(warm_up([&](const StepPlan& plan) { return runner->wait(runner->enqueue(plan)); },
              {.groups = runner->kv_.size(),
               .block_size = config.block_size,
               .most_tokens = std::min(config.max_num_batched_tokens, most)}));
  return runner;
}

// For what steps are told from the host.
Status ModelRunner::make_room(const RunnerConfig& config, const BatchSizes& largest) {
  Device& device = runtime_.device();
  for (const KvView& view : kv_) TRY(ops::check_heads(device, view.spec));
  const auto history = static_cast<size_t>(largest_blocks_) *
                       static_cast<size_t>(config.block_size * largest.num_sequences);
  TRY_ASSIGN(sampler_, Sampler::create(runtime_, config.max_num_seqs, model_.info().vocab_size));
  const size_t batch = Batch::buffer_elements(largest) * sizeof(int32_t);
  return device.reserve_stage(std::min(batch, kMostStaged) +
                              sampler_->input_bytes(std::min(history, kMostHistory)));
}

Status ModelRunner::allocate(const std::vector<int>& num_blocks, size_t activations) {
  CHECK(num_blocks.size() == kv_.size())
      << num_blocks.size() << " pools for " << kv_.size() << " KV groups";
  for (size_t group = 0; group < kv_.size(); ++group) {
    KvView& view = kv_[group];
    const size_t bytes =
        ops::kv_block_bytes(view.spec, view.block_size) * static_cast<size_t>(num_blocks[group]);
    TRY(runtime_.lease(bytes, "the KV cache"));
    leased_ += bytes;
    TRY_ASSIGN(Buffer memory, runtime_.device().allocate(bytes, "the KV cache"));
    view.data = memory.data();
    view.num_blocks = num_blocks[group];
    kv_memory_.push_back(std::move(memory));
  }
  TRY(runtime_.lease(activations, "activations"));
  leased_ += activations;
  TRY_ASSIGN(activations_,
             runtime_.device().allocate(
                 activations, "activations (fewer --max-num-batched-tokens would need less)"));
  arena_ = Arena(activations_.data(), activations_.bytes());
  return Status();
}

BatchSizes ModelRunner::largest_step(const RunnerConfig& config) {
  BatchSizes largest;
  largest.num_tokens = config.max_num_batched_tokens;
  largest.max_queries = config.max_num_batched_tokens;
  largest.num_sequences = std::min(config.max_num_seqs, config.max_num_batched_tokens);
  largest.num_logits = std::max(largest.num_sequences, config.max_num_logits);
  largest.num_groups = static_cast<int>(kv_.size());
  largest.max_blocks = config.max_model_len > 0 ? config.max_model_len / config.block_size + 1
                                                : config.num_blocks.front();
  largest_blocks_ = largest.max_blocks;
  // The most that decoding is rounded up to.
  BatchSizes decode = largest;
  decode.num_tokens = decode.num_logits = decode.num_sequences;
  decode.max_queries = 1;
  decode = recorder_->padded(decode);
  largest.num_sequences = decode.num_sequences;
  largest.num_tokens = std::max(largest.num_tokens, decode.num_tokens);
  largest.num_logits = std::max(largest.num_logits, decode.num_logits);
  largest.max_blocks = decode.max_blocks;
  return largest;
}

// A dry run: every op takes its scratch and computes nothing.
size_t ModelRunner::measure_activations(const BatchSizes& largest) {
  Arena measuring;
  ExecContext ctx{runtime_.device(), runtime_.pool(), measuring, kv_, /*dry_run=*/true};
  Batch batch;
  batch.sizes = largest;
  const Tensor logits = ctx.tensor(largest.num_logits, model_.info().vocab_size, DType::kF32);
  model_.forward(ctx, batch, {logits});
  const std::vector<SampleRow> rows(static_cast<size_t>(largest.num_sequences));
  sampler_->submit(ctx, logits, rows, nullptr);
  return measuring.peak();
}

// One row for each sequence that samples. A token that was fed by reference to the step before is
// missing in the plan's history: if it `is_known` by now, that is copied and completed.
std::vector<SampleRow> ModelRunner::rows_of(const StepPlan& plan, bool is_known) {
  std::vector<SampleRow> rows;
  completed_.clear();
  size_t tokens = 0;  // up to and with this sequence's
  int64_t logit_row = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    tokens += static_cast<size_t>(sequence.num_tokens);
    logit_row += sequence.all_logits ? sequence.num_tokens : sequence.sample ? 1 : 0;
    if (!sequence.sample) continue;
    SampleRow row;
    row.params = sequence.sampling;
    row.logit_row = logit_row - 1;
    row.position = static_cast<uint32_t>(sequence.position + sequence.num_tokens);
    row.answer = sequence.answer;
    row.prompt_tokens = static_cast<uint32_t>(sequence.prompt_tokens);
    row.history = sequence.history;
    row.end_ids = sequence.end_ids;
    if (row.history.size() < row.position && needs_history(*row.params)) {
      auto& history = completed_.emplace_back(row.history.begin(), row.history.end());
      for (size_t missing = row.position - history.size(); missing > 0; --missing) {
        const InputToken input = plan.tokens[tokens - missing];
        if (is_from_row(input) && !is_known) {
          row.in_flight = ~input;
          break;
        }
        history.push_back(is_from_row(input) ? sampled_.at(static_cast<size_t>(~input)) : input);
      }
      row.history = history;
    }
    rows.push_back(row);
  }
  return rows;
}

// What the model thought of the prompt, where that is asked for. The row of a token is about the
// one that follows it.
std::vector<ScoredToken> ModelRunner::score_prompts(ExecContext& ctx, const StepPlan& plan,
                                                    const Tensor& logits) {
  std::vector<ScoreRow> rows;
  std::vector<ScoredToken> scored;
  int64_t first_row = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    if (sequence.all_logits && sequence.sampling && sequence.sampling->prompt_logprobs) {
      for (int i = 0; i < sequence.num_tokens; ++i) {
        const int position = sequence.position + i + 1;
        if (position >= sequence.prompt_tokens) break;
        const int32_t token = sequence.history[static_cast<size_t>(position)];
        rows.push_back({first_row + i, token, *sequence.sampling->prompt_logprobs});
        scored.push_back({sequence.sequence, position, token, 0, {}});
      }
    }
    first_row += sequence.all_logits ? sequence.num_tokens : sequence.sample ? 1 : 0;
  }
  std::vector<SampleOutput> outputs(rows.size());
  score(ctx, logits, rows, outputs);
  for (size_t i = 0; i < rows.size(); ++i) {
    scored[i].token = outputs[i].token;
    scored[i].logprob = outputs[i].logprob;
    scored[i].top = std::move(outputs[i].top);
  }
  return scored;
}

// Some logits were no numbers: runs the step again, which writes the same K and V to the same
// places, and says in the log where it went wrong.
void ModelRunner::find_fault(ExecContext& ctx, const StepPlan& plan, const Batch& batch,
                             const Tensor& logits, const std::vector<SampleOutput>& chosen) {
  std::vector<bool> tokens;
  int failed = 0;
  auto row = chosen.begin();
  for (const SequencePlan& sequence : plan.sequences) {
    const bool failing = sequence.sample && (row++)->token == kNotNumbers;
    tokens.resize(tokens.size() + static_cast<size_t>(sequence.num_tokens), failing);
    failed += failing ? 1 : 0;
  }
  if (failed == 0 || !ctx.device.host_reads()) return;
  FaultWatch watch(std::move(tokens));
  ctx.faults = &watch;
  model_.forward(ctx, batch, {logits});
  ctx.faults = nullptr;
  log_warning("the logits of ", failed, " of ", plan.sequences.size(),
              " sequences are not numbers; the first result with a NaN or an infinity: ",
              watch.found() ? watch.where() : "none, what they read from the KV cache");
}

// The hook's logits are the host's.
void ModelRunner::show(const StepPlan& plan, const Tensor& logits) {
  if (runtime_.device().host_reads()) {
    hook_(plan, logits);
    return;
  }
  std::vector<float> values(static_cast<size_t>(logits.rows * logits.cols));
  const Status done =
      runtime_.device().download(values.data(), logits.data, values.size() * sizeof(float));
  if (!done.ok()) return;  // the step fails with its device
  hook_(plan, Tensor(values.data(), DType::kF32, logits.rows, logits.cols));
}

// The forward as a whole: what it had to move, and the device's time for it.
void ModelRunner::trace_forward(const ExecContext& ctx, const StepPlan& plan, int64_t begin_ns,
                                int64_t end_ns) const {
  const TraceContext& trace = ctx.trace;
  ForwardStep step{.step = trace.step,
                   .tokens = static_cast<int>(plan.tokens.size()),
                   .phase = ctx.phase,
                   .weight_bytes = model_.info().weight_bytes};
  for (const KvView& view : kv_) {
    const uint64_t token =
        ops::kv_block_bytes(view.spec, view.block_size) / static_cast<uint64_t>(view.block_size);
    step.kv_written_bytes += token * plan.tokens.size();
    for (const SequencePlan& sequence : plan.sequences) {
      const int cached = sequence.position + sequence.num_tokens;
      const int reach = view.spec.window + sequence.num_tokens - 1;
      const int read = view.spec.window > 0 ? std::min(cached, reach) : cached;
      step.kv_read_bytes += token * static_cast<uint64_t>(read);
    }
  }
  // The first two are of the forward's own span; waits lie anywhere within it.
  const SpanId forward = trace.parent;
  Tracer& tracer = *trace.tracer;
  tracer.add({TraceLevel::kStep, begin_ns, end_ns, forward, plan.trace.parent, step});
  if (trace.on(TraceLevel::kOp)) {
    tracer.add({TraceLevel::kOp, begin_ns, end_ns, forward, plan.trace.parent,
                DeviceTime{"cb_gpu", ctx.phase, trace.step, backend_}});
  }
  if (trace.on(TraceLevel::kKernel)) {
    tracer.add({TraceLevel::kKernel, end_ns - trace.wait_ns, end_ns, tracer.new_span(), forward,
                DeviceTime{"cb_wait", ctx.phase, trace.step, backend_}});
  }
}

Ticket ModelRunner::submit(const StepPlan& plan) {
  CHECK(!plan.empty()) << "a step without sequences";
  const std::scoped_lock turn(runtime_.turn());
  return enqueue(plan);
}

// A step that could not begin. What the next one, planned already, takes from its rows is void, but
// must be there.
Ticket ModelRunner::give_up(InFlight& step, const StepPlan& plan, const Status& why) {
  step.result.error = why.message();
  step.failed = true;
  sampled_.assign(plan.sequences.size(), 0);
  return next_ticket_++;
}

Ticket ModelRunner::enqueue(const StepPlan& plan) {
  Device& device = runtime_.device();
  const bool is_known = in_flight_.empty() || sampler_->newest() != nullptr;
  InFlight& step = in_flight_.emplace_back();
  if (const Status health = device.health(); !health.ok()) return give_up(step, plan, health);
  ExecContext ctx{device, runtime_.pool(), arena_, kv_};
  ctx.trace = plan.trace;
  ctx.trace.backend = backend_;
  const auto part = [&](const char* name) {
    return PartScope(ctx.trace, TraceLevel::kOp, "generation_loop", name);
  };
  PartScope reset = part("pool_reset");
  arena_.rewind(0);
  reset.end();
  PartScope staging = part("tensor_staging_prepare");
  const BatchSizes sizes = recorder_->padded(builder_.sizes(plan));
  Batch batch = builder_.build(plan, sizes, is_known ? &sampled_ : nullptr, inputs_);
  const std::vector<SampleRow> rows = rows_of(plan, is_known);
  sampler_->add_inputs(rows, inputs_);
  staging.end();
  PartScope flushing = part("tensor_staging_flush");
  const Result<const void*> staged = device.stage(inputs_.data(), inputs_.size() * sizeof(int32_t));
  if (!staged.ok()) return give_up(step, plan, staged.error());
  batch.host = inputs_.data();
  batch.data = static_cast<const int32_t*>(staged.value());
  batch.previous = sampler_->on_device();
  flushing.end();
  ctx.phase = sizes.max_queries <= 1 ? Phase::kDecode : Phase::kPrefill;
  ctx.ledger = ledger_;
  const Tensor logits = ctx.tensor(sizes.num_logits, model_.info().vocab_size, DType::kF32);
  run_forward(ctx, plan, batch, logits, step);
  if (hook_) show(plan, logits);

  PartScope sampling(ctx.trace, TraceLevel::kStep, "sampling", "next_token_ready_latency");
  StepClock clock(device, sampling.begin_ns());
  if (is_watched(ctx) && step.marks[0] >= 0) ctx.trace.clock = &clock;
  sampler_->submit(ctx, logits, rows, batch.data);
  step.result.scored = score_prompts(ctx, plan, logits);
  step.enqueued = device.enqueued();
  step.result.sample_ns = sampling.end();
  if (step.marks[0] >= 0) step.marks[2] = device.mark();
  if (std::exchange(ctx.trace.clock, nullptr)) clock.settle(step.marks[2], ctx.trace, ledger_);
  ctx.trace = {};
  if (const std::vector<SampleOutput>* chosen = sampler_->newest()) {
    find_fault(ctx, plan, batch, logits, *chosen);
    remember(*chosen);
  }
  return next_ticket_++;
}

// Ops that somebody watches are not played from a recording.
void ModelRunner::run_forward(ExecContext& ctx, const StepPlan& plan, const Batch& batch,
                              const Tensor& logits, InFlight& step) {
  PartScope forward(ctx.trace, TraceLevel::kStep, "generation_loop", "forward_step_total");
  const bool traced = ctx.trace.on(TraceLevel::kStep);
  const bool watched = is_watched(ctx);
  if (traced || watched) step.marks[0] = ctx.device.mark();
  const bool own_clock = step.marks[0] >= 0;
  StepClock clock(ctx.device, forward.begin_ns());
  if (watched && own_clock) ctx.trace.clock = &clock;
  ops::copy_kv_blocks(ctx, plan.copies);
  const auto work = [&] { model_.forward(ctx, batch, {logits}); };
  watched ? work() : recorder_->run(batch, work);
  ctx.trace.clock = nullptr;
  if (own_clock) step.marks[1] = ctx.device.mark();
  int64_t begin_ns = forward.begin_ns();
  int64_t end_ns = now_ns();
  if (watched && own_clock) {
    end_ns = clock.settle(step.marks[1], ctx.trace, ledger_);
    begin_ns = clock.time_of(step.marks[0]);
  }
  if (traced) trace_forward(ctx, plan, begin_ns, end_ns);
  step.result.forward_ns = forward.end();
}

void ModelRunner::remember(const std::vector<SampleOutput>& chosen) {
  sampled_.clear();
  for (const SampleOutput& output : chosen) sampled_.push_back(output.token);
}

StepResult ModelRunner::wait(Ticket ticket) {
  CHECK(!in_flight_.empty() && ticket + in_flight_.size() == next_ticket_)
      << "ticket " << ticket << " is not the oldest one in flight";
  InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  StepResult result = std::move(step.result);
  if (step.failed) return result;
  Result<std::vector<SampleOutput>> chosen = sampler_->collect();
  for (const Status& status : {step.enqueued, runtime_.device().health()}) {
    if (chosen.ok() && !status.ok()) chosen = status.error();
  }
  if (!chosen.ok()) {
    result.error = chosen.message();
    return result;
  }
  // By the device's own clock, where it has one: the tokens are there, so it has passed these.
  if (step.marks[2] >= 0) {
    result.forward_ns = runtime_.device().ns_between(step.marks[0], step.marks[1]);
    result.sample_ns = runtime_.device().ns_between(step.marks[1], step.marks[2]);
  }
  if (in_flight_.empty()) remember(chosen.value());
  for (SampleOutput& output : chosen.value()) {
    result.sampled.push_back({output.token, output.logprob, std::move(output.top)});
  }
  return result;
}

}  // namespace tinyvllm
