#include "engine/llm_engine.h"

#include "base/log.h"
#include "engine/kv_sizing.h"
#include "engine/prepare_sampling.h"
#include "model/convert/dummy.h"
#include "model/registry.h"

namespace tinyvllm {
namespace {

Status check_options(const EngineOptions& options) {
  const auto at_least_one = [](const char* name, int value) {
    return value >= 1 ? Status() : error(name, ": expected at least 1, found ", value);
  };
  TRY(at_least_one("max_num_batched_tokens", options.max_num_batched_tokens));
  TRY(at_least_one("max_num_seqs", options.max_num_seqs));
  TRY(at_least_one("block_size", options.block_size));
  return Status();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<std::unique_ptr<ModelFiles>> open_files(Runtime& runtime, const std::string& path,
                                               const EngineOptions& options) {
  if (options.load_format == "auto") return ModelFiles::open(path);
  if (options.load_format != "dummy") {
    return error("load_format: expected auto or dummy, found '", printable(options.load_format),
                 "'");
  }
  TRY_ASSIGN(const FileType type, file_type_from_name(options.dtype));
  return make_dummy(path, type, /*pure=*/false, runtime.device(), runtime.pool());
}

}  // namespace

Result<std::unique_ptr<LLMEngine>> LLMEngine::load(Runtime& runtime, const std::string& path,
                                                   const EngineOptions& options) {
  TRY(check_options(options));
  std::unique_ptr<LLMEngine> engine(new LLMEngine());
  TRY_ASSIGN(engine->files_, open_files(runtime, path, options));
  TRY_ASSIGN(engine->tokenizer_, Tokenizer::create(engine->files_->tokenizer()));
  TRY_ASSIGN(engine->model_, load_model(*engine->files_, runtime.device(), runtime.pool(),
                                        {options.max_model_len}));
  TRY(engine->make_cache(runtime, options));
  return engine;
}

Status LLMEngine::make_cache(Runtime& runtime, const EngineOptions& options) {
  const ModelInfo& info = model_->info();
  TRY_ASSIGN(const KvSizing sizing, size_kv_cache(info.kv_groups, info.context_length,
                                                  runtime.device().available_memory(), options));
  max_model_len_ = sizing.max_model_len;
  log_info("KV cache: ", human_bytes(static_cast<double>(sizing.bytes)), ", ",
           (sizing.groups.front().num_blocks - 1) * options.block_size, " tokens");

  RunnerConfig runner;
  runner.block_size = options.block_size;
  for (const KvGroup& group : sizing.groups) runner.num_blocks.push_back(group.num_blocks);
  runner.max_num_batched_tokens = options.max_num_batched_tokens;
  runner.max_num_seqs = options.max_num_seqs;
  TRY_ASSIGN(runner_, ModelRunner::create(runtime, *model_, runner));
  blocks_ = std::make_unique<BlockManager>(sizing.groups, options.block_size,
                                           options.enable_prefix_caching);
  SchedulerConfig scheduler;
  scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  scheduler.max_num_seqs = options.max_num_seqs;
  scheduler.max_model_len = max_model_len_;
  scheduler.end_ids = tokenizer_->end_ids();
  core_ = std::make_unique<EngineCore>(*runner_, *blocks_, scheduler, options.depth);
  return Status();
}

Result<RequestId> LLMEngine::add_request(std::vector<int32_t> prompt, SamplingParams sampling,
                                         const RequestOptions& options) {
  const int64_t vocabulary = model_->info().vocab_size;
  for (const int32_t token : prompt) {
    if (token < 0 || token >= vocabulary) {
      return error("prompt: token ", token, " is outside the vocabulary of ", vocabulary);
    }
  }
  if (options.truncate_prompt_tokens < 0) {
    return error("truncate_prompt_tokens: expected at least 1, found ",
                 options.truncate_prompt_tokens);
  }
  const auto keep = static_cast<size_t>(options.truncate_prompt_tokens);
  if (keep > 0 && prompt.size() > keep) {
    prompt.erase(prompt.begin(), prompt.end() - static_cast<ptrdiff_t>(keep));
  }
  TRY(prepare_sampling(sampling, *tokenizer_, vocabulary));

  // Each answer is a sequence; the first one's id is the request's, and the others share its
  // prompt.
  const RequestId id = next_sequence_;
  const DetokenizerOptions text{sampling.skip_special_tokens, sampling.stop,
                                sampling.include_stop_str_in_output};
  for (uint32_t answer = 0; answer < static_cast<uint32_t>(sampling.n); ++answer) {
    Request request;
    request.id = next_sequence_++;
    request.prompt = prompt;
    request.sampling = sampling;
    request.priority = options.priority;
    request.cache_salt = options.cache_salt;
    request.shares_prompt_of = answer == 0 ? 0 : id;
    request.answer = answer;
    const SequenceId sequence = request.id;
    TRY(core_->add(std::move(request)));  // the first one tells; the others are like it
    answers_.emplace(sequence, Answer{id,
                                      answer,
                                      static_cast<int>(prompt.size()),
                                      0,
                                      Clock::now(),
                                      {},
                                      Detokenizer(*tokenizer_, text)});
  }
  return id;
}

void LLMEngine::abort(RequestId request) {
  std::erase_if(answers_, [&](const auto& entry) {
    if (entry.second.request != request) return false;
    core_->abort(entry.first);
    return true;
  });
}

std::vector<RequestOutput> LLMEngine::step() {
  std::vector<RequestOutput> outputs;
  for (SequenceOutput& news : core_->step()) {
    const SequenceId sequence = news.sequence;
    const auto found = answers_.find(sequence);
    if (found == answers_.end()) continue;
    outputs.push_back(deliver(found->second, std::move(news)));
    if (outputs.back().finish == FinishReason::kNone) continue;
    core_->abort(sequence);  // for those that a stop string ended; the others are over already
    answers_.erase(found);
  }
  return outputs;
}

// Tokens to text, for one answer.
RequestOutput LLMEngine::deliver(Answer& answer, SequenceOutput&& news) {
  RequestOutput output;
  output.request = answer.request;
  output.answer = answer.index;
  output.finish = news.finish;
  output.error = std::move(news.error);
  output.cached_tokens = news.cached_tokens;
  for (const SampledToken& token : news.tokens) {
    // The token that ends an answer is counted and reported, and is not text.
    const bool ends = news.finish == FinishReason::kStop && &token == &news.tokens.back();
    if (!ends) output.text += answer.text.push(token.token);
  }
  if (answer.text.stopped()) {
    output.finish = FinishReason::kStop;
    output.stop_string = answer.text.stop_string();
  } else if (output.finish != FinishReason::kNone) {
    output.text += answer.text.finish();
  }
  answer.timings.total_s = seconds_since(answer.arrived);
  if (answer.completion_tokens == 0) answer.timings.ttft_s = answer.timings.total_s;
  answer.completion_tokens += static_cast<int>(news.tokens.size());
  output.tokens = std::move(news.tokens);
  output.prompt_tokens = answer.prompt_tokens;
  output.completion_tokens = answer.completion_tokens;
  output.timings = answer.timings;
  return output;
}

}  // namespace tinyvllm
