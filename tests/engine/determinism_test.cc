// The promise: a request's logits are the same bits, and so its tokens the same, whatever runs
// beside it, however its prompt is cut or cached, whatever the block size, the number of threads
// and of steps in flight, also after a preemption, at any temperature, given the seed. For a tiny
// model of every architecture and for the real one.
#include "tests/engine/determinism.h"

namespace tinyvllm {
namespace {

TEST_P(Determinism, ChunksBlocksThreadsStepsInFlightAndCompany) {
  expect_same_in_every_setting({1, 2});
}

TEST_P(Determinism, APrefixHitOfEveryLength) {
  learn();
  const int block = 8;
  const auto engine = load({.name = "prefixes", .block_size = block});
  const Tokens whole = prompt(1, prompt_length());
  for (int shared = 0; shared <= prompt_length(); shared += is_real() ? 5 : 1) {
    RequestOptions options;
    options.cache_salt = str_cat("salt ", shared);
    Tokens other(whole.begin(), whole.begin() + shared);
    other.resize(whole.size() + 9, 60);
    SamplingParams short_answer = params(0);
    short_answer.max_tokens = 2;
    ASSERT_TRUE(engine->add_request(other, short_answer, options).ok());
    engine->run();
    const uint64_t hits = engine->stats().prefix.hit_tokens;
    expect_same(run_watched(*engine, 0, 1, options), str_cat("a shared prefix of ", shared));
    // At least one token is computed anew; the three requests may find one another's blocks too.
    const int found = std::min(shared / block, (prompt_length() - 1) / block) * block;
    EXPECT_GE(engine->stats().prefix.hit_tokens - hits, static_cast<uint64_t>(3 * found));
  }
}

// A cache for hardly more than one sequence. Requests that go before the watched ones grow until
// one of those has to give up its blocks and begin again.
TEST_P(Determinism, AfterAPreemption) {
  learn();
  bool can_run_out = false;
  const std::unique_ptr<LLMEngine> plain = load({});
  for (const KvSpec& spec : plain->model().info().kv_groups) can_run_out |= spec.window == 0;
  for (const int depth : {0, 1}) {
    Setting setting{.name = str_cat("preempted, depth ", depth), .chunk = 64, .block_size = 8};
    setting.depth = depth;
    setting.max_model_len = prompt_length() + 40;
    setting.kv_cache_memory = smallest_cache(setting);
    setting.enable_prefix_caching = false;
    const auto engine = load(setting);
    int restarted = 0;
    for (int elder = 3; elder < 40; elder += is_real() ? 12 : 3) {
      SamplingParams long_answer = params(0);
      long_answer.max_tokens = 30;
      RequestOptions first;
      first.priority = -1;
      ASSERT_TRUE(engine->add_request(prompt(900, elder), long_answer, first).ok());
      const std::vector<Watched> traces = run_watched(*engine, 0, 3);
      expect_same(traces, setting.name);
      for (const Watched& trace : traces) restarted += trace.starts > 1 ? 1 : 0;
    }
    if (can_run_out) {
      EXPECT_GT(restarted, 0) << "nothing was preempted";
    }
  }
}

// All settings with all: `make test-long` asks for this one.
TEST_P(Determinism, DISABLED_EverythingAtOnce) {
  learn();
  uint64_t seed = 100;
  for (const int chunk : {1, 7, 16, 64, 4096}) {
    for (const int block : {8, 16, 32}) {
      for (const int threads : {1, 2}) {
        for (const int depth : {0, 1}) {
          expect_same({.name = str_cat("chunks of ", chunk, ", blocks of ", block, ", ", threads,
                                       " threads, depth ", depth),
                       .chunk = chunk,
                       .block_size = block,
                       .threads = threads,
                       .depth = depth,
                       .others = 31},
                      ++seed);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Determinism,
                         testing::Values("gemma3", "gemma3_deep", "llama", "llama_bias",
                                         "llama_linear", "llama_llama3", "mistral", "olmo2", "phi3",
                                         "qwen2", "qwen2_yarn", "qwen3", "qwen3moe",
                                         "qwen3moe_plain", "smollm2"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tinyvllm
