#include "apps/bench_load.h"

#include <algorithm>
#include <map>

#include "apps/command.h"
#include "base/stopwatch.h"

namespace tinyvllm {

std::vector<int32_t> random_tokens(int count, int64_t vocab_size, uint64_t seed) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  uint64_t state = seed * 2 + 1;
  for (int32_t& token : tokens) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab_size));
  }
  return tokens;
}

double Load::tokens_per_s() const {
  int tokens = 0;
  for (const Served& request : requests) tokens += request.tokens;
  return seconds > 0 ? tokens / seconds : 0;
}

std::vector<double> Load::each(double (*of)(const Served&)) const {
  std::vector<double> values;
  for (const Served& request : requests) values.push_back(of(request));
  return values;
}

double ttft_ms(const Served& request) { return 1e3 * request.timings.ttft_s; }
double tpot_ms(const Served& request) { return 1e3 * request.timings.per_token_s(request.tokens); }
double e2e_ms(const Served& request) { return 1e3 * request.timings.total_s; }

Result<Load> serve(LLMEngine& engine, const std::vector<Prompt>& prompts, int tokens) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = tokens;
  Load load;
  std::map<RequestId, Served> served;  // ids ascend, as the prompts do
  const Stopwatch clock;
  for (const Prompt& prompt : prompts) {
    TRY_ASSIGN(const RequestId request, engine.add_request(prompt, sampling));
    served[request];
  }
  while (engine.has_work()) {
    if (interrupted()) {
      for (const auto& [request, unused] : served) engine.abort(request);
      return error("interrupted");
    }
    for (const RequestOutput& news : engine.step()) {
      if (!news.error.empty()) return error(news.error);
      Served& request = served[news.request];
      request.prompt_tokens = news.prompt_tokens;
      request.cached_tokens = news.cached_tokens;
      if (request.tokens > 0 && !news.tokens.empty()) {
        request.gaps_ms.push_back(1e3 * (news.timings.total_s - request.timings.total_s));
      }
      request.tokens = news.completion_tokens;
      request.timings = news.timings;
      request.text += news.text;
    }
    load.used_blocks = std::max(load.used_blocks, engine.stats().used_blocks);
  }
  load.seconds = clock.seconds();
  for (auto& [id, request] : served) load.requests.push_back(std::move(request));
  return load;
}

}  // namespace tinyvllm
