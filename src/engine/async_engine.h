// The engine for many threads. One thread owns scheduler, cache and model and does nothing but
// steps; another turns tokens into text and calls back, so that no client, however slow, holds up a
// step. They and the callers meet in two queues:
//
//   callers ── requests ──▶ inbox ──▶ engine thread ── tokens ──▶ outbox ──▶ delivery thread
//                             ▲                                     ▲              │ callbacks
//                             └── sequences to stop ────────────────┼──────────────┘
//   callers ── aborts ──────────────────────────────────────────────┘
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/llm_engine.h"

namespace tinyvllm {

class AsyncEngine {
 public:
  // Called on the delivery thread, one call at a time. Each answer's last output has a finish
  // reason, "abort" among them; nothing comes after it. May submit and abort, but not shut down.
  using Callback = std::function<void(RequestOutput&&)>;

  explicit AsyncEngine(std::unique_ptr<LLMEngine> engine);
  ~AsyncEngine();  // aborts what is left
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // The rest is safe to call from any thread. Templates and tokenizers run on the caller's; a
  // request that cannot be is refused here and calls nobody back.
  Result<RequestId> submit(const Prompt& prompt, SamplingParams sampling,
                           const RequestOptions& options, Callback callback);
  void abort(RequestId request);  // a request that is over, or never was, is left alone

  enum class Shutdown { kDrain, kAbort };
  // From now on submit refuses. Returns when every request has had its last callback: at its own
  // end, or soon.
  void shutdown(Shutdown how);

  EngineStats stats() const;  // as of the newest step
  RooflineTable profile(std::chrono::nanoseconds duration) { return engine_->profile(duration); }
  const Tokenizer& tokenizer() const { return engine_->tokenizer(); }
  const ModelInfo& model() const { return engine_->model().info(); }
  int max_model_len() const { return engine_->max_model_len(); }
  // Only what the engine says is safe from any thread.
  const LLMEngine& engine() const { return *engine_; }

 private:
  struct Expect {
    PreparedRequest request;
    Callback callback;
  };
  struct Abort {
    RequestId request = 0;
  };
  struct AbortAll {};
  using ToEngine = std::variant<Request, SequenceId>;  // to add, or to stop
  using ToCallers = std::variant<Expect, SequenceOutput, Abort, AbortAll>;

  void run_engine();
  void run_delivery();
  bool take_inbox();
  void deliver(SequenceOutput& news);
  void deliver(const std::vector<Answers::Ended>& ended);
  void call_back(RequestOutput&& output);
  void stop(SequenceId sequence);

  const std::unique_ptr<LLMEngine> engine_;

  // Of the delivery thread alone.
  Answers answers_;
  TraceContext trace_;
  struct Caller {
    Callback callback;
    size_t answers = 0;  // that are not over
  };
  std::unordered_map<RequestId, Caller> callers_;

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable inbox_filled_;
  std::condition_variable outbox_filled_;
  std::vector<ToEngine> inbox_;
  std::vector<ToCallers> outbox_;
  bool closing_ = false;      // nothing new is taken
  bool engine_done_ = false;  // nothing new comes from the engine
  EngineStats stats_;

  std::mutex shutdown_mutex_;  // of joining the threads
  std::thread engine_thread_;
  std::thread delivery_thread_;
};

}  // namespace tinyvllm
