// tinyvllm as a library: a model loaded, requests from any number of threads, answers as they come.
//
//   auto engine = tinyvllm::Engine::load("model.gguf").value();
//   tinyvllm::SamplingParams sampling;
//   auto answers = engine->generate("Once upon a time", sampling).value();
//
// Safe to call from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tinyvllm/engine_options.h"
#include "tinyvllm/outputs.h"
#include "tinyvllm/request.h"
#include "tinyvllm/result.h"
#include "tinyvllm/sampling_params.h"

namespace tinyvllm {

class Engine {
 public:
  // `model`: a .gguf file or a Hugging Face folder. `threads`: 0 takes the physical cores.
  static Result<std::unique_ptr<Engine>> load(const std::string& model,
                                              const EngineOptions& options = {}, int threads = 0);
  // On a device of the caller's choice: load("model.gguf", {}, {.device = "cuda"}).
  static Result<std::unique_ptr<Engine>> load(const std::string& model,
                                              const EngineOptions& options,
                                              const DeviceOptions& device);
  ~Engine();  // aborts what is left
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Called on a thread of the engine's, one call at a time. Each answer's last output has a finish
  // reason. May submit and abort, but neither wait nor destroy the engine.
  using Callback = std::function<void(RequestOutput&&)>;

  // A request that cannot be is refused here and calls nobody back.
  Result<RequestId> submit(const Prompt& prompt, const SamplingParams& sampling, Callback callback,
                           const RequestOptions& options = {});
  void abort(RequestId request);  // a request that is over, or never was, is left alone

  // Submits and waits: one complete output for each of the request's answers.
  Result<std::vector<RequestOutput>> generate(const Prompt& prompt, const SamplingParams& sampling,
                                              const RequestOptions& options = {});

  // What the model's author recommends, where the files say so.
  SamplingParams default_sampling() const;

  void drain();  // takes no more requests, and returns when all have had their last callback
  EngineStats stats() const;

 private:
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tinyvllm
