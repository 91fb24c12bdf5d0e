#include "engine/model_runner.h"

#include <algorithm>

#include "base/check.h"
#include "ops/attention.h"
#include "sample/sampler.h"

namespace tinyvllm {

ModelRunner::ModelRunner(Runtime& runtime, const Model& model, const RunnerConfig& config)
    : runtime_(runtime),
      model_(model),
      builder_(static_cast<int>(model.info().kv_groups.size()), config.block_size) {}

ModelRunner::~ModelRunner() { runtime_.give_back(leased_); }

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(Runtime& runtime, const Model& model,
                                                         const RunnerConfig& config) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner(runtime, model, config));
  TRY(runner->allocate(config));
  return runner;
}

Status ModelRunner::allocate(const RunnerConfig& config) {
  for (const KvSpec& spec : model_.info().kv_groups) {
    const size_t bytes =
        ops::kv_block_bytes(spec, config.block_size) * static_cast<size_t>(config.num_blocks);
    TRY(runtime_.lease(bytes, "the KV cache"));
    leased_ += bytes;
    TRY_ASSIGN(Buffer memory, runtime_.device().allocate(bytes, "the KV cache"));
    kv_.push_back(KvView{memory.data(), spec, config.block_size, config.num_blocks});
    kv_memory_.push_back(std::move(memory));
  }
  const size_t bytes = measure_activations(config);
  TRY(runtime_.lease(bytes, "activations"));
  leased_ += bytes;
  TRY_ASSIGN(activations_, runtime_.device().allocate(bytes, "activations"));
  arena_ = Arena(activations_.data(), activations_.bytes());
  return Status();
}

// A dry run of the largest step there can be: every op takes its scratch and computes nothing.
size_t ModelRunner::measure_activations(const RunnerConfig& config) {
  Arena measuring;
  ExecContext ctx{runtime_.device(), runtime_.pool(), measuring, kv_, /*dry_run=*/true};
  Batch largest;
  largest.sizes.num_tokens = config.max_num_batched_tokens;
  largest.sizes.max_queries = config.max_num_batched_tokens;
  largest.sizes.num_sequences = std::min(config.max_num_seqs, config.max_num_batched_tokens);
  largest.sizes.num_logits = std::max(largest.sizes.num_sequences, config.max_num_logits);
  largest.sizes.num_groups = static_cast<int>(kv_.size());
  largest.sizes.max_blocks = config.num_blocks;
  const Tensor logits = ctx.tensor(largest.sizes.num_logits, model_.info().vocab_size, DType::kF32);
  model_.forward(ctx, largest, {logits});
  return measuring.peak();
}

Ticket ModelRunner::submit(const StepPlan& plan) {
  CHECK(!plan.empty()) << "a step without sequences";
  const Batch batch = builder_.build(plan, sampled_);
  const ArenaScope scope(arena_);
  ExecContext ctx{runtime_.device(), runtime_.pool(), arena_, kv_};
  const Tensor logits = ctx.tensor(batch.sizes.num_logits, model_.info().vocab_size, DType::kF32);
  model_.forward(ctx, batch, {logits});
  if (hook_) hook_(plan, logits);

  std::vector<SampleRow> rows;
  StepResult result;
  int64_t logit_row = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    logit_row += sequence.all_logits ? sequence.num_tokens : sequence.sample ? 1 : 0;
    if (!sequence.sample) continue;
    const auto position = static_cast<uint32_t>(sequence.position + sequence.num_tokens);
    rows.push_back({sequence.sampling, position, logit_row - 1});
    result.sampled.push_back({sequence.sequence, -1, 0});
  }
  std::vector<SampleOutput> chosen(rows.size());
  sample(ctx, logits, rows, chosen);

  sampled_.resize(chosen.size());
  for (size_t row = 0; row < chosen.size(); ++row) {
    result.sampled[row].token = sampled_[row] = chosen[row].token;
    result.sampled[row].logprob = chosen[row].logprob;
  }
  done_.push_back(std::move(result));
  return next_ticket_++;
}

StepResult ModelRunner::wait(Ticket ticket) {
  CHECK(!done_.empty() && ticket + done_.size() == next_ticket_)
      << "ticket " << ticket << " is not the oldest one in flight";
  StepResult result = std::move(done_.front());
  done_.pop_front();
  return result;
}

}  // namespace tinyvllm
