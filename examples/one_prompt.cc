// One question to a model, its answer as it comes:  one_prompt MODEL.gguf "Why is the sky blue?"
// A third word says where it is computed: cpu or cuda.
#include <cstdio>
#include <tinyvllm/engine.h>

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: one_prompt MODEL QUESTION [cpu|cuda]\n");
    return 2;
  }
  tinyvllm::DeviceOptions device;  // what the environment's DEVICE says, or else the CPU
  if (argc == 4) device.device = argv[3];
  auto engine = tinyvllm::Engine::load(argv[1], {}, device);
  if (!engine.ok()) {
    std::fprintf(stderr, "error: %s\n", engine.message().c_str());
    return 1;
  }
  tinyvllm::SamplingParams sampling;
  sampling.temperature = 0;
  sampling.max_tokens = 64;
  const std::vector<tinyvllm::ChatMessage> messages = {{"user", argv[2]}};
  const auto request =
      engine.value()->submit(messages, sampling, [](tinyvllm::RequestOutput&& news) {
        std::fputs(news.text.c_str(), stdout);
        std::fflush(stdout);
      });
  if (!request.ok()) {
    std::fprintf(stderr, "error: %s\n", request.message().c_str());
    return 1;
  }
  engine.value()->drain();
  std::puts("");
}
