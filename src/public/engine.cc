#include "tinyvllm/engine.h"

#include <future>

#include "engine/async_engine.h"

namespace tinyvllm {

// In the order in which they are needed: the engine gives its memory back to the runtime.
struct Engine::Parts {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<AsyncEngine> engine;
  SamplingParams defaults;
};

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const std::string& model, const EngineOptions& options,
                                             int threads) {
  DeviceOptions device;
  device.threads = threads;
  return load(model, options, device);
}

Result<std::unique_ptr<Engine>> Engine::load(const std::string& model, const EngineOptions& options,
                                             const DeviceOptions& device) {
  auto parts = std::make_unique<Parts>();
  TRY_ASSIGN(const RuntimeOptions runtime, runtime_options(device));
  TRY_ASSIGN(parts->runtime, Runtime::create(runtime));
  TRY_ASSIGN(std::unique_ptr<LLMEngine> loaded, LLMEngine::load(*parts->runtime, model, options));
  const GenerationDefaults& own = loaded->files().generation_defaults();
  TRY_ASSIGN(parts->defaults, default_params({own.temperature, own.top_p, own.min_p,
                                              own.repetition_penalty, own.top_k}));
  parts->engine = std::make_unique<AsyncEngine>(std::move(loaded));
  return std::unique_ptr<Engine>(new Engine(std::move(parts)));
}

Result<RequestId> Engine::submit(const Prompt& prompt, const SamplingParams& sampling,
                                 Callback callback, const RequestOptions& options) {
  return parts_->engine->submit(prompt, sampling, options, std::move(callback));
}

void Engine::abort(RequestId request) { parts_->engine->abort(request); }

Result<std::vector<RequestOutput>> Engine::generate(const Prompt& prompt,
                                                    const SamplingParams& sampling,
                                                    const RequestOptions& options) {
  std::vector<RequestOutput> answers(static_cast<size_t>(std::max(0, sampling.n)));
  std::promise<void> done;
  size_t left = answers.size();
  TRY(submit(
      prompt, sampling,
      [&](RequestOutput&& news) {
        RequestOutput& answer = answers[news.answer];
        append(answer, std::move(news));
        if (answer.finish != FinishReason::kNone && --left == 0) done.set_value();
      },
      options));
  done.get_future().wait();
  return answers;
}

SamplingParams Engine::default_sampling() const { return parts_->defaults; }

void Engine::drain() { parts_->engine->shutdown(AsyncEngine::Shutdown::kDrain); }

EngineStats Engine::stats() const { return parts_->engine->stats(); }

}  // namespace tinyvllm
