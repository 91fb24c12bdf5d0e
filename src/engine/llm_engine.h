// The engine with text: a model loaded and ready, prompts in, text out as it becomes certain. One
// thread owns it; `encode` and `prepare` are for any. AsyncEngine is the same for many threads.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/runtime.h"
#include "engine/answers.h"
#include "engine/engine_core.h"
#include "engine/model_runner.h"
#include "engine/prepare_request.h"
#include "engine/request_output.h"
#include "io/model_files.h"
#include "model/model.h"
#include "model/model_options.h"
#include "telemetry/roofline.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tinyvllm {

class LLMEngine {
 public:
  static Result<std::unique_ptr<LLMEngine>> load(Runtime& runtime, const std::string& path,
                                                 const EngineOptions& options);
  ~LLMEngine();

  Result<RequestId> add_request(const Prompt& prompt, SamplingParams sampling,
                                const RequestOptions& options = {});
  void abort(RequestId request);  // nothing is heard of it again
  bool has_work() const { return core_->has_work(); }

  // One step for everyone: what it brought, for those it brought something.
  std::vector<RequestOutput> step();

  // Steps until all is done: one output per answer, complete, in the order in which they were
  // asked.
  std::vector<RequestOutput> run();

  // What add_request does on its way, safe to call from any thread.
  Result<std::vector<int32_t>> encode(const Prompt& prompt) const;
  Result<std::vector<int32_t>> encode(const ChatInput& conversation) const;
  Result<PreparedRequest> prepare(const Prompt& prompt, SamplingParams sampling,
                                  const RequestOptions& options);

  // Listens at op level for that long, while another thread steps, and holds every op of the steps
  // seen whole against what this machine was measured to do; a machine that was never measured is
  // measured then. Safe to call from any thread.
  RooflineTable profile(std::chrono::nanoseconds duration);

  EngineCore& core() { return *core_; }
  Tracer& tracer() const { return runtime_->tracer(); }
  // For what happens to answers after their step.
  TraceContext delivery_trace() const { return {.tracer = &tracer(), .level = tracer().level()}; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  const ModelFiles& files() const { return *files_; }
  ModelRunner& runner() { return *runner_; }
  EngineStats stats() const { return core_->stats(); }
  int max_model_len() const { return max_model_len_; }

  // Whether its device still works; once it does not, nothing will be answered any more.
  Status health() const { return runtime_->device().health(); }
  // How long the weights took from the file's map to where the device reads them.
  struct Loading {
    PreparationStats weights;
    double seconds = 0;
  };
  const Loading& loading() const { return loading_; }

 private:
  explicit LLMEngine(Runtime& runtime) : runtime_(&runtime) {}
  void open_chat_template();
  Status make_cache(Runtime& runtime, const EngineOptions& options);

  Runtime* const runtime_;
  std::unique_ptr<ModelFiles> files_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate>
      chat_template_;        // absent: the files carry none, or not one that works
  std::string no_template_;  // why
  std::unique_ptr<ChatEncoder> chat_encoder_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BlockManager> blocks_;
  std::unique_ptr<EngineCore> core_;
  std::unique_ptr<Answers> answers_;
  int max_model_len_ = 0;
  Loading loading_;
  std::atomic<SequenceId> next_sequence_{1};
};

}  // namespace tinyvllm
