#include "engine/async_engine.h"

namespace tinyvllm {

AsyncEngine::AsyncEngine(std::unique_ptr<LLMEngine> engine)
    : engine_(std::move(engine)),
      answers_(engine_->tokenizer(), engine_->tracer()),
      stats_(engine_->stats()) {
  engine_thread_ = std::thread([this] { run_engine(); });
  delivery_thread_ = std::thread([this] { run_delivery(); });
}

AsyncEngine::~AsyncEngine() { shutdown(Shutdown::kAbort); }

Result<RequestId> AsyncEngine::submit(const Prompt& prompt, SamplingParams sampling,
                                      const RequestOptions& options, Callback callback) {
  TRY_ASSIGN(PreparedRequest prepared, engine_->prepare(prompt, std::move(sampling), options));
  const RequestId id = prepared.id;
  std::vector<Request> sequences = prepared.sequences;
  {
    const std::scoped_lock lock(mutex_);
    if (closing_) return error("the engine is shutting down and takes no requests");
    // In this order: whatever the engine says of a request finds it expected.
    outbox_.emplace_back(Expect{std::move(prepared), std::move(callback)});
    for (Request& sequence : sequences) inbox_.emplace_back(std::move(sequence));
  }
  inbox_filled_.notify_one();
  return id;
}

void AsyncEngine::abort(RequestId request) {
  {
    const std::scoped_lock lock(mutex_);
    outbox_.emplace_back(Abort{request});
  }
  outbox_filled_.notify_one();
}

void AsyncEngine::shutdown(Shutdown how) {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (how == Shutdown::kAbort) outbox_.emplace_back(AbortAll{});
  }
  inbox_filled_.notify_one();
  outbox_filled_.notify_one();
  const std::scoped_lock lock(shutdown_mutex_);
  if (engine_thread_.joinable()) engine_thread_.join();
  if (delivery_thread_.joinable()) delivery_thread_.join();
}

EngineStats AsyncEngine::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

// Hands what has come in to the scheduler, waiting for it when there is nothing else to do. False
// when nothing will ever come.
bool AsyncEngine::take_inbox() {
  std::vector<ToEngine> taken;
  {
    std::unique_lock lock(mutex_);
    const bool idle = !engine_->core().has_work();
    if (idle) inbox_filled_.wait(lock, [&] { return !inbox_.empty() || closing_; });
    if (idle && inbox_.empty()) return false;
    taken.swap(inbox_);
  }
  for (ToEngine& item : taken) {
    if (const auto* sequence = std::get_if<SequenceId>(&item)) {
      engine_->core().abort(*sequence);
      continue;
    }
    const Status added = engine_->core().add(std::move(std::get<Request>(item)));
    CHECK(added.ok()) << "a request that was checked: " << added.message();
  }
  return true;
}

void AsyncEngine::run_engine() {
  while (take_inbox()) {
    const EngineCore::Iteration iteration(engine_->core());
    std::vector<SequenceOutput> news = engine_->core().step();
    const EngineStats stats = engine_->core().stats();
    {
      const std::scoped_lock lock(mutex_);
      stats_ = stats;
      for (SequenceOutput& output : news) outbox_.emplace_back(std::move(output));
    }
    if (!news.empty()) outbox_filled_.notify_one();
  }
  {
    const std::scoped_lock lock(mutex_);
    engine_done_ = true;
  }
  outbox_filled_.notify_one();
}

void AsyncEngine::run_delivery() {
  for (;;) {
    std::vector<ToCallers> taken;
    {
      std::unique_lock lock(mutex_);
      outbox_filled_.wait(lock, [&] { return !outbox_.empty() || engine_done_; });
      if (outbox_.empty()) return;
      taken.swap(outbox_);
    }
    trace_ = engine_->delivery_trace();
    for (ToCallers& item : taken) {
      if (auto* expect = std::get_if<Expect>(&item)) {
        answers_.expect(expect->request);
        callers_[expect->request.id] = {std::move(expect->callback),
                                        expect->request.sequences.size()};
      } else if (auto* news = std::get_if<SequenceOutput>(&item)) {
        deliver(*news);
      } else if (const auto* abort = std::get_if<Abort>(&item)) {
        deliver(answers_.abort(abort->request));
      } else {
        deliver(answers_.abort_all());
      }
    }
  }
}

void AsyncEngine::deliver(SequenceOutput& news) {
  const SequenceId sequence = news.sequence;
  const bool engine_knows = news.finish != FinishReason::kNone;
  std::optional<RequestOutput> output = answers_.deliver(std::move(news), trace_);
  if (!output) return;
  if (output->finish != FinishReason::kNone && !engine_knows) stop(sequence);
  call_back(std::move(*output));
}

void AsyncEngine::deliver(const std::vector<Answers::Ended>& ended) {
  for (const Answers::Ended& answer : ended) {
    stop(answer.sequence);
    call_back(RequestOutput(answer.output));
  }
}

void AsyncEngine::call_back(RequestOutput&& output) {
  const auto caller = callers_.find(output.request);
  CHECK(caller != callers_.end()) << "request " << output.request << " has no caller";
  const PartScope part(trace_, TraceLevel::kOp, "generation_loop", "token_callback");
  const bool over = output.finish != FinishReason::kNone && --caller->second.answers == 0;
  if (!over) {
    caller->second.callback(std::move(output));
    return;
  }
  const Callback callback = std::move(caller->second.callback);
  callers_.erase(caller);
  callback(std::move(output));
}

void AsyncEngine::stop(SequenceId sequence) {
  {
    const std::scoped_lock lock(mutex_);
    inbox_.emplace_back(sequence);
  }
  inbox_filled_.notify_one();
}

}  // namespace tinyvllm
