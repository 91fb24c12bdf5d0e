#include "engine/llm_engine.h"

#include <algorithm>
#include <future>
#include <malloc.h>
#include <map>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/stopwatch.h"
#include "engine/kv_sizing.h"
#include "engine/load_trace.h"
#include "engine/machine_limits.h"
#include "io/touch_ahead.h"
#include "model/convert/dummy.h"
#include "model/registry.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "telemetry/profiler.h"

namespace tinyvllm {
namespace {

Status check_options(const EngineOptions& options) {
  const auto at_least_one = [](const char* name, int value) {
    return value >= 1 ? Status() : error(name, ": expected at least 1, found ", value);
  };
  TRY(at_least_one("max_num_batched_tokens", options.max_num_batched_tokens));
  TRY(at_least_one("max_num_seqs", options.max_num_seqs));
  TRY(at_least_one("block_size", options.block_size));
  if (options.depth < 0 || options.depth > 1) {
    return error("depth: expected 0 or 1, found ", options.depth);
  }
  return Status();
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

// The device looks at what the files hold no longer than this lives.
class ExpectedWeights {
 public:
  explicit ExpectedWeights(Device& device) : device_(device) {}
  ~ExpectedWeights() { device_.forget_weights(); }
  ExpectedWeights(const ExpectedWeights&) = delete;
  ExpectedWeights& operator=(const ExpectedWeights&) = delete;

  Status tell(const ModelFiles& files, ThreadPool& pool) {
    return ops::expect_weights(device_, weights_in_order(files, device_, pool));
  }

 private:
  Device& device_;
};

}  // namespace

Result<std::unique_ptr<LLMEngine>> LLMEngine::load(Runtime& runtime, const std::string& path,
                                                   const EngineOptions& wanted) {
  EngineOptions options = wanted;
  if (options.max_num_batched_tokens == 0) {
    options.max_num_batched_tokens = runtime.device().step_tokens();
  }
  if (options.depth == -1) options.depth = runtime.device().steps_ahead();
  TRY(check_options(options));
  std::unique_ptr<LLMEngine> engine(new LLMEngine(runtime));
  const std::scoped_lock turn(runtime.turn());
  TRY_ASSIGN(const DType cache, kv_cache_dtype(options.kv_cache_dtype));
  std::future<void> kernels;
  if (runtime.device().warms_up()) {
    kernels = std::async(std::launch::async, [&] { ops::load_weight_kernels(runtime.device()); });
  }
  TRY_ASSIGN(engine->files_, open_files(runtime, path, options));
  ExpectedWeights expected(runtime.device());
  std::optional<TouchAhead> touching;
  if (!runtime.device().host_reads()) {
    TRY(expected.tell(*engine->files_, runtime.pool()));
    touching.emplace(engine->files_->weights());
  }
  TRY_ASSIGN(engine->tokenizer_, Tokenizer::create(engine->files_->tokenizer()));
  engine->open_chat_template();
  if (kernels.valid()) kernels.wait();
  PreparationStats stats;
  const Stopwatch loading;
  TRY_ASSIGN(engine->model_,
             load_model(*engine->files_, runtime.device(), runtime.pool(),
                        {options.max_model_len, cache, options.load_progress, nullptr, &stats}));
  engine->loading_ = {stats, loading.seconds()};
  trace_load(runtime, *engine->files_, engine->model_->info(), stats);
  TRY(engine->make_cache(runtime, options));
  malloc_trim(0);  // reading a vocabulary leaves holes in the heap
  return engine;
}

// The device gets its memory back while no other engine loads or computes.
LLMEngine::~LLMEngine() {
  answers_.reset();
  core_.reset();
  const std::scoped_lock turn(runtime_->turn());
  runner_.reset();
  model_.reset();
}

// A model without a template, or with a broken one, still continues texts.
void LLMEngine::open_chat_template() {
  Result<ChatTemplate> opened = ChatTemplate::from_model(files_->tokenizer());
  if (!opened.ok()) {
    no_template_ = opened.message();
    return;
  }
  chat_template_ = std::move(opened).value();
  chat_encoder_ = std::make_unique<ChatEncoder>(*tokenizer_, *chat_template_);
}

Status LLMEngine::make_cache(Runtime& runtime, const EngineOptions& options) {
  const ModelInfo& info = model_->info();
  // At first of all memory that the weights leave: how long a sequence may become, which decides
  // over activations. Then of what those leave.
  KvSizing sizing;
  size_t budget = SIZE_MAX;
  const auto size_cache = [&](size_t activations) -> Result<std::vector<int>> {
    budget = std::min(budget, runtime.device().cache_budget(activations));
    TRY_ASSIGN(sizing, size_kv_cache(info.kv_groups, info.context_length, budget, options));
    std::vector<int> num_blocks;
    for (const KvGroup& group : sizing.groups) num_blocks.push_back(group.num_blocks);
    return num_blocks;
  };
  RunnerConfig runner;
  TRY_ASSIGN(runner.num_blocks, size_cache(0));
  runner.max_model_len = sizing.max_model_len;
  runner.block_size = options.block_size;
  runner.max_num_batched_tokens = options.max_num_batched_tokens;
  runner.max_num_seqs = options.max_num_seqs;
  runner.max_num_logits = options.max_num_seqs + SchedulerConfig().max_scored_tokens;
  TRY_ASSIGN(runner_, ModelRunner::create(runtime, *model_, runner, size_cache));
  max_model_len_ = sizing.max_model_len;
  if (!sizing.lowered.empty()) log_warning(sizing.lowered);
  log_info("KV cache: ", human_bytes(static_cast<double>(sizing.bytes)), ", ",
           (sizing.groups.front().num_blocks - 1) * options.block_size, " tokens");
  blocks_ = std::make_unique<BlockManager>(sizing.groups, options.block_size,
                                           options.enable_prefix_caching);
  SchedulerConfig scheduler;
  scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  scheduler.max_num_seqs = options.max_num_seqs;
  scheduler.max_model_len = max_model_len_;
  scheduler.end_ids = tokenizer_->end_ids();
  answers_ = std::make_unique<Answers>(*tokenizer_, runtime.tracer());
  MemoryFigures memory{files_->file_bytes(), sizing.bytes, runner_->activation_bytes()};
  for (const KvSpec& spec : info.kv_groups) {
    memory.kv_token_bytes +=
        ops::kv_block_bytes(spec, options.block_size) / static_cast<uint64_t>(options.block_size);
  }
  core_ = std::make_unique<EngineCore>(*runner_, *blocks_, scheduler, options.depth,
                                       &runtime.tracer(), memory);
  return Status();
}

Result<std::vector<int32_t>> LLMEngine::encode(const Prompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) return tokenizer_->encode(*text, {});
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  return encode(ChatInput::from_messages(std::get<std::vector<ChatMessage>>(prompt),
                                         /*add_generation_prompt=*/true));
}

Result<std::vector<int32_t>> LLMEngine::encode(const ChatInput& conversation) const {
  if (!chat_template_) return error("messages: ", no_template_);
  TRY_ASSIGN(const ChatPrompt rendered, chat_template_->render(conversation));
  return chat_encoder_->encode(rendered);
}

Result<PreparedRequest> LLMEngine::prepare(const Prompt& prompt, SamplingParams sampling,
                                           const RequestOptions& options) {
  const auto arrived = std::chrono::steady_clock::now();
  TRY(health());
  TRY_ASSIGN(std::vector<int32_t> ids, encode(prompt));
  TRY_ASSIGN(PreparedRequest prepared,
             prepare_request(std::move(ids), std::move(sampling), options, *tokenizer_,
                             {model_->info().vocab_size, core_->scheduler().longest_prompt()}));
  TRY(core_->scheduler().check(prepared.sequences.front()));
  prepared.arrived = arrived;
  prepared.id = next_sequence_.fetch_add(prepared.sequences.size());
  for (Request& request : prepared.sequences) {
    request.id = prepared.id + request.answer;
    if (request.answer > 0) request.shares_prompt_of = prepared.id;
  }
  if (tracer().on(TraceLevel::kStep)) {
    prepared.span = tracer().new_span();
    const int64_t now = now_ns();
    const Request& first = prepared.sequences.front();
    tracer().add({TraceLevel::kStep, now, now, prepared.span, Tracer::kRun,
                  RequestAdded{prepared.id, static_cast<int64_t>(first.prompt.size()),
                               first.sampling.max_tokens, first.sampling.n}});
  }
  return prepared;
}

Result<RequestId> LLMEngine::add_request(const Prompt& prompt, SamplingParams sampling,
                                         const RequestOptions& options) {
  TRY_ASSIGN(PreparedRequest prepared, prepare(prompt, std::move(sampling), options));
  answers_->expect(prepared);
  for (Request& request : prepared.sequences) TRY(core_->add(std::move(request)));
  return prepared.id;
}

void LLMEngine::abort(RequestId request) {
  for (const Answers::Ended& ended : answers_->abort(request)) core_->abort(ended.sequence);
}

std::vector<RequestOutput> LLMEngine::step() {
  const EngineCore::Iteration iteration(*core_);
  std::vector<RequestOutput> outputs;
  for (SequenceOutput& news : core_->step()) {
    const SequenceId sequence = news.sequence;
    std::optional<RequestOutput> output = answers_->deliver(std::move(news), core_->trace());
    if (!output) continue;
    // For those that a stop string ended; the others are over already.
    if (output->finish != FinishReason::kNone) core_->abort(sequence);
    outputs.push_back(std::move(*output));
  }
  return outputs;
}

RooflineTable LLMEngine::profile(std::chrono::nanoseconds duration) {
  Profiler profiler(tracer());
  std::this_thread::sleep_for(duration);
  profiler.stop();
  return profiler.table(limits_of(*runtime_));
}

std::vector<RequestOutput> LLMEngine::run() {
  std::map<std::pair<RequestId, uint32_t>, RequestOutput> answers;
  while (has_work()) {
    for (RequestOutput& news : step()) {
      const auto [entry, is_new] = answers.try_emplace({news.request, news.answer});
      if (is_new) {
        entry->second = std::move(news);
      } else {
        append(entry->second, std::move(news));
      }
    }
  }
  std::vector<RequestOutput> outputs;
  for (auto& [key, output] : answers) outputs.push_back(std::move(output));
  return outputs;
}

}  // namespace tinyvllm
