#include "engine/llm_engine.h"

#include "model/registry.h"
#include "sample/random.h"

namespace tinyvllm {

Result<std::unique_ptr<LLMEngine>> LLMEngine::load(Runtime& runtime, const std::string& path,
                                                   const EngineOptions& options) {
  if (options.max_num_batched_tokens < 1) {
    return error("max_num_batched_tokens: expected at least 1, found ",
                 options.max_num_batched_tokens);
  }
  if (options.block_size < 1) {
    return error("block_size: expected at least 1, found ", options.block_size);
  }
  std::unique_ptr<LLMEngine> engine(new LLMEngine());
  TRY_ASSIGN(engine->files_, ModelFiles::open(path));
  TRY_ASSIGN(engine->tokenizer_, Tokenizer::create(engine->files_->tokenizer()));
  TRY_ASSIGN(engine->model_, load_model(*engine->files_, runtime.device(), runtime.pool(),
                                        {options.max_model_len}));

  const ModelInfo& info = engine->model_->info();
  engine->max_model_len_ =
      options.max_model_len == 0 ? static_cast<int>(info.context_length) : options.max_model_len;
  if (engine->max_model_len_ < 2 || engine->max_model_len_ > info.context_length) {
    return error("max_model_len: expected 2 to ", info.context_length,
                 " (the model's context), found ", engine->max_model_len_);
  }

  RunnerConfig runner;
  runner.block_size = options.block_size;
  runner.max_num_batched_tokens = options.max_num_batched_tokens;
  runner.num_blocks = 1 + (engine->max_model_len_ + options.block_size - 1) / options.block_size;
  TRY_ASSIGN(engine->runner_, ModelRunner::create(runtime, *engine->model_, runner));
  engine->blocks_ = std::make_unique<BlockManager>(static_cast<int>(info.kv_groups.size()),
                                                   options.block_size, runner.num_blocks);
  SchedulerConfig scheduler;
  scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  scheduler.max_model_len = engine->max_model_len_;
  scheduler.end_ids = engine->tokenizer_->end_ids();
  engine->scheduler_ = std::make_unique<Scheduler>(scheduler, *engine->blocks_);
  return engine;
}

Result<SequenceId> LLMEngine::add_request(std::vector<int32_t> prompt,
                                          const SamplingParams& sampling) {
  for (const int32_t token : prompt) {
    if (token < 0 || token >= model_->info().vocab_size) {
      return error("prompt: token ", token, " is outside the vocabulary of ",
                   model_->info().vocab_size);
    }
  }
  TRY(validate(sampling, {.vocab_size = model_->info().vocab_size}));
  const SequenceId id = next_request_++;
  Request request{id, std::move(prompt), sampling};
  if (!sampling.seed) request.sampling.seed = random_seed();
  TRY(scheduler_->add(std::move(request)));
  return id;
}

std::vector<RequestOutput> LLMEngine::step() {
  const StepPlan plan = scheduler_->schedule();
  if (plan.empty()) return {};
  const StepResult result = runner_->wait(runner_->submit(plan));

  std::vector<RequestOutput> outputs;
  auto sampled = result.sampled.begin();
  for (const SequencePlan& sequence : plan.sequences) {
    if (!sequence.sample) {
      scheduler_->commit(sequence.sequence, {});
      continue;
    }
    const int32_t token = (sampled++)->token;
    if (token < 0) {
      scheduler_->abort(sequence.sequence);
      scheduler_->commit(sequence.sequence, {});
      outputs.push_back({sequence.sequence,
                         {},
                         FinishReason::kError,
                         token == kNothingAllowed
                             ? "the request's bans and penalties leave no token to choose"
                             : "the model's logits are not numbers"});
      continue;
    }
    Committed committed = scheduler_->commit(sequence.sequence, {&token, 1});
    outputs.push_back({sequence.sequence, std::move(committed.tokens), committed.finish, ""});
  }
  return outputs;
}

}  // namespace tinyvllm
