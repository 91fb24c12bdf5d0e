// The engine: a model loaded and ready, requests in, tokens out. One thread owns it. `step` is the
// whole of serving: schedule, submit, wait, commit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "device/runtime.h"
#include "engine/model_runner.h"
#include "io/model_files.h"
#include "kv/block_manager.h"
#include "model/model.h"
#include "sched/scheduler.h"
#include "text/tokenizer.h"

namespace tinyvllm {

struct EngineOptions {
  int max_model_len = 0;  // 0: the context the model was trained for
  int max_num_batched_tokens = 512;
  int block_size = 16;
};

struct RequestOutput {
  SequenceId request = 0;
  std::vector<int32_t> tokens;  // new since the last output
  FinishReason finish = FinishReason::kNone;
  std::string error;  // with kError
};

class LLMEngine {
 public:
  static Result<std::unique_ptr<LLMEngine>> load(Runtime& runtime, const std::string& path,
                                                 const EngineOptions& options);

  Result<SequenceId> add_request(std::vector<int32_t> prompt, const SamplingParams& sampling);
  void abort(SequenceId request) { scheduler_->abort(request); }
  bool has_work() const { return scheduler_->has_work(); }
  std::vector<RequestOutput> step();

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  ModelRunner& runner() { return *runner_; }
  int max_model_len() const { return max_model_len_; }

 private:
  LLMEngine() = default;

  std::unique_ptr<ModelFiles> files_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BlockManager> blocks_;
  std::unique_ptr<Scheduler> scheduler_;
  int max_model_len_ = 0;
  SequenceId next_request_ = 1;
};

}  // namespace tinyvllm
