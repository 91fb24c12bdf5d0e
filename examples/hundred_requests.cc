// A hundred requests at once, answered together:  hundred_requests MODEL.gguf
#include <cstdio>
#include <string>
#include <tinyvllm/engine.h>

int main(int argc, char** argv) {
  auto engine = tinyvllm::Engine::load(argc > 1 ? argv[1] : "");
  if (!engine.ok()) {
    std::fprintf(stderr, "error: %s\n", engine.message().c_str());
    return 1;
  }
  tinyvllm::SamplingParams sampling;
  sampling.temperature = 0;
  sampling.max_tokens = 8;
  int answered = 0;  // callbacks come one at a time
  for (int i = 0; i < 100; ++i) {
    const std::string prompt = "The number after " + std::to_string(i) + " is";
    auto done = [&answered, text = prompt](tinyvllm::RequestOutput&& news) mutable {
      text += news.text;
      if (news.finish == tinyvllm::FinishReason::kNone) return;
      answered += 1;
      std::puts(text.c_str());
    };
    if (!engine.value()->submit(prompt, sampling, done).ok()) return 1;
  }
  engine.value()->drain();
  std::fprintf(stderr, "%d answers in %llu steps\n", answered,
               static_cast<unsigned long long>(engine.value()->stats().steps));
}
