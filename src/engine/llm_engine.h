// The engine with text: a model loaded and ready, prompts in, text out as it becomes certain. One
// thread owns it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/request.h"
#include "device/runtime.h"
#include "engine/engine_core.h"
#include "engine/model_runner.h"
#include "io/model_files.h"
#include "model/model.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace tinyvllm {

using RequestId = uint64_t;

struct RequestOptions {
  int priority = 0;                // lower runs first
  std::string cache_salt;          // prompts with different salts share no cache
  int truncate_prompt_tokens = 0;  // keep only so many of the prompt's last tokens; 0: all
};

struct Timings {
  double ttft_s = 0;   // from the request to its first token
  double total_s = 0;  // and to its newest one
};

// News of one answer to a request.
struct RequestOutput {
  RequestId request = 0;
  uint32_t answer = 0;  // which, of several
  std::string text;     // new since the last output, whole characters
  std::vector<SampledToken> tokens;
  FinishReason finish = FinishReason::kNone;
  std::string stop_string;  // the one that ended it, if one did
  int prompt_tokens = 0;
  int completion_tokens = 0;  // so far
  int cached_tokens = 0;      // of the prompt
  Timings timings;            // so far
  std::string error;          // with kError
};

class LLMEngine {
 public:
  static Result<std::unique_ptr<LLMEngine>> load(Runtime& runtime, const std::string& path,
                                                 const EngineOptions& options);

  Result<RequestId> add_request(std::vector<int32_t> prompt, SamplingParams sampling,
                                const RequestOptions& options = {});
  void abort(RequestId request);
  bool has_work() const { return core_->has_work(); }

  // One step for everyone: what it brought, for those it brought something.
  std::vector<RequestOutput> step();

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  const ModelFiles& files() const { return *files_; }
  ModelRunner& runner() { return *runner_; }
  EngineStats stats() const { return core_->stats(); }
  int max_model_len() const { return max_model_len_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {  // one sequence's way back to text
    RequestId request = 0;
    uint32_t index = 0;
    int prompt_tokens = 0;
    int completion_tokens = 0;
    Clock::time_point arrived;
    Timings timings;
    Detokenizer text;
  };

  LLMEngine() = default;
  Status make_cache(Runtime& runtime, const EngineOptions& options);
  RequestOutput deliver(Answer& answer, SequenceOutput&& news);

  std::unique_ptr<ModelFiles> files_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BlockManager> blocks_;
  std::unique_ptr<EngineCore> core_;
  std::map<SequenceId, Answer> answers_;
  int max_model_len_ = 0;
  SequenceId next_sequence_ = 1;
};

}  // namespace tinyvllm
