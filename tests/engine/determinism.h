// A request alone against the same request in every other setting: what runs beside it, how its
// prompt is cut, blocks, threads, steps in flight.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "engine/kv_sizing.h"
#include "tests/engine/smollm2.h"
#include "tests/engine/tiny_engine.h"

namespace tinyvllm {

using Tokens = std::vector<int32_t>;

// What is known of one sequence: its tokens, and the logits that each was chosen from.
struct Watched {
  Tokens tokens;
  std::map<int, std::vector<float>> logits;  // by position of the token fed last
};

struct Setting {
  std::string name;
  int chunk = 4096;
  int block_size = 16;
  int threads = 2;
  int depth = 0;
  int others = 0;
  int max_model_len = 256;
  size_t kv_cache_memory = size_t{64} << 20;
  bool enable_prefix_caching = true;
};

class Determinism : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kKinds = 4;  // of requests

  bool is_real() const { return GetParam() == "smollm2"; }
  int vocabulary() const { return is_real() ? 49152 : kTinyVocabulary; }
  int prompt_length() const { return is_real() ? 45 : 75; }

  virtual RuntimeOptions device(int threads) const { return {threads}; }
  virtual std::string dtype() const { return "F32"; }
  virtual std::string kv_cache_dtype() const { return "f16"; }
  virtual int answer_tokens() const { return 10; }
  // A card that is asked for its logits works in step with the host, and its promise is about more.
  virtual bool sees_logits() const { return true; }

  std::unique_ptr<LLMEngine> load(const Setting& setting) {
    std::unique_ptr<Runtime>& runtime = runtimes_[setting.threads];
    if (runtime == nullptr) runtime = Runtime::create(device(setting.threads)).value();
    EngineOptions options = tiny_options();
    options.dtype = dtype();
    options.kv_cache_dtype = kv_cache_dtype();
    options.max_num_batched_tokens = setting.chunk;
    options.max_num_seqs = 40;
    options.block_size = setting.block_size;
    options.depth = setting.depth;
    options.max_model_len = setting.max_model_len;
    options.kv_cache_memory = setting.kv_cache_memory;
    options.enable_prefix_caching = setting.enable_prefix_caching;
    if (is_real()) options.load_format = "auto";
    if (!is_real()) return load_tiny(*runtime, options, GetParam());
    auto engine = LLMEngine::load(*runtime, smollm2_path(), options);
    EXPECT_TRUE(engine.ok()) << engine.message();
    return std::move(engine).value();
  }

  // Bytes of the smallest KV cache that holds one sequence of full length.
  size_t smallest_cache(const Setting& setting) {
    const ModelInfo info = load({})->model().info();
    EngineOptions options;
    options.max_model_len = setting.max_model_len;
    options.block_size = setting.block_size;
    options.max_num_batched_tokens = setting.chunk;
    options.depth = setting.depth;
    for (options.kv_cache_memory = 1024;; options.kv_cache_memory += options.kv_cache_memory / 16) {
      const auto sizing = size_kv_cache(info.kv_groups, info.context_length, 0, options);
      if (sizing.ok()) return options.kv_cache_memory;
    }
  }

  Tokens prompt(uint64_t seed, int length) const {
    std::mt19937_64 random(seed);
    Tokens tokens;
    for (int i = 0; i < length; ++i) {
      tokens.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary() - 100)) +
                       50);
    }
    return tokens;
  }

  // The requests that are watched: greedy, tame, wild with every past token counting, and odd.
  SamplingParams params(int which) const {
    SamplingParams params;
    params.seed = 11;
    params.max_tokens = answer_tokens();
    params.ignore_eos = true;
    params.temperature = std::vector{0.0, 0.7, 1.8, 0.9}[static_cast<size_t>(which)];
    if (which == 1) params.top_p = 0.9;
    if (which == 2) {
      params.repetition_penalty = 1.2;
      params.frequency_penalty = 0.3;
    }
    if (which == 3) {  // a card leaves these to the host
      params.typical_p = 0.95;
      params.dry_multiplier = 0.8;
    }
    return params;
  }

  void add_others(LLMEngine& engine, int count, uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
      SamplingParams sampling = params(static_cast<int>(random() % kKinds));
      sampling.seed = random();
      sampling.max_tokens = 1 + static_cast<int>(random() % 12);
      const int length = 1 + static_cast<int>(random() % (is_real() ? 40 : 90));
      EXPECT_TRUE(engine.add_request(prompt(random(), length), sampling).ok());
    }
  }

  static void watch_logits(LLMEngine& engine, std::map<RequestId, Watched>& traces) {
    engine.runner().on_logits([&](const StepPlan& plan, const Tensor& logits) {
      int64_t row = 0;
      for (const SequencePlan& sequence : plan.sequences) {
        const auto trace = traces.find(sequence.sequence);
        if (!sequence.sample) continue;
        if (trace != traces.end()) {
          const float* x = logits.f32() + row * logits.stride;
          std::vector<float>& kept =
              trace->second.logits[sequence.position + sequence.num_tokens - 1];
          const std::vector<float> now(x, x + logits.cols);
          if (kept.empty()) kept = now;
          EXPECT_EQ(std::memcmp(kept.data(), now.data(), now.size() * sizeof(float)), 0);
        }
        row += 1;
      }
    });
  }

  // Runs what was added, watching some requests; keeps what the runner computed for them.
  std::map<RequestId, Watched> run(LLMEngine& engine, const std::vector<RequestId>& watched) const {
    std::map<RequestId, Watched> traces;
    for (const RequestId id : watched) traces[id] = {};
    if (sees_logits()) watch_logits(engine, traces);
    for (const RequestOutput& output : engine.run()) {
      EXPECT_EQ(output.error, "");
      if (traces.count(output.request) != 0) traces[output.request].tokens = token_ids(output);
    }
    engine.runner().on_logits(nullptr);
    EXPECT_EQ(engine.stats().used_blocks, 0);
    return traces;
  }

  std::vector<Watched> run_watched(LLMEngine& engine, int others, uint64_t seed,
                                   const RequestOptions& options = {}) {
    std::vector<RequestId> ids;
    add_others(engine, others / 2, seed);
    for (int which = 0; which < kKinds; ++which) {
      ids.push_back(engine.add_request(prompt(1, prompt_length()), params(which), options).value());
      add_others(engine, which == 0 ? others - others / 2 : 0, seed + 1);
    }
    std::vector<Watched> traces;
    for (auto& [id, trace] : run(engine, ids)) traces.push_back(std::move(trace));
    return traces;
  }

  void learn() {
    const Setting alone;
    const auto engine = load(alone);
    for (int which = 0; which < kKinds; ++which) {
      const RequestId id = engine->add_request(prompt(1, prompt_length()), params(which)).value();
      expected_.push_back(run(*engine, {id})[id]);
      const auto tokens = static_cast<size_t>(answer_tokens());
      ASSERT_EQ(expected_.back().tokens.size(), tokens);
      ASSERT_EQ(expected_.back().logits.size(), sees_logits() ? tokens : 0);
    }
    ASSERT_NE(expected_[0].tokens, expected_[2].tokens);
  }

  void expect_same(const std::vector<Watched>& traces, const std::string& how) const {
    ASSERT_EQ(traces.size(), size_t{kKinds});
    for (size_t which = 0; which < kKinds; ++which) {
      const Watched& expected = expected_[which];
      EXPECT_EQ(traces[which].tokens, expected.tokens) << how << ", request " << which;
      for (const auto& [position, logits] : traces[which].logits) {
        const auto found = expected.logits.find(position);
        if (found == expected.logits.end()) continue;  // a step in flight past the end
        EXPECT_EQ(std::memcmp(logits.data(), found->second.data(), logits.size() * sizeof(float)),
                  0)
            << how << ", request " << which << " at " << position;
      }
    }
  }

  void expect_same(const Setting& setting, uint64_t seed = 7) {
    const auto engine = load(setting);
    expect_same(run_watched(*engine, setting.others, seed), setting.name);
  }

  void expect_same_in_every_setting(const std::vector<int>& thread_counts) {
    learn();
    for (const int chunk : {1, 7, 16, 64}) expect_same({str_cat("chunks of ", chunk), chunk});
    for (const int block : {8, 32}) {
      expect_same({.name = str_cat("blocks of ", block), .block_size = block});
    }
    for (const int threads : thread_counts) {
      for (const int depth : {0, 1}) {
        expect_same({.name = str_cat("a crowd, ", threads, " threads, depth ", depth),
                     .chunk = 100,
                     .threads = threads,
                     .depth = depth,
                     .others = 31});
      }
    }
  }

  void expect_same_after_prefix_hits() {
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
      // At least one token is computed anew; the requests may find one another's blocks too.
      const int found = std::min(shared / block, (prompt_length() - 1) / block) * block;
      EXPECT_GE(engine->stats().prefix.hit_tokens - hits, static_cast<uint64_t>(kKinds * found));
    }
  }

  // A cache for hardly more than one sequence. Requests that go before the watched ones grow until
  // one of those has to give up its blocks and begin again.
  void expect_same_after_preemptions() {
    learn();
    bool can_run_out = false;
    const ModelInfo info = load({})->model().info();
    for (const KvSpec& spec : info.kv_groups) can_run_out |= spec.window == 0;
    for (const int depth : {0, 1}) {
      Setting setting{.name = str_cat("preempted, depth ", depth), .chunk = 64, .block_size = 8};
      setting.depth = depth;
      setting.max_model_len = prompt_length() + 40;
      setting.kv_cache_memory = smallest_cache(setting);
      setting.enable_prefix_caching = false;
      const auto engine = load(setting);
      for (int elder = 3; elder < 40; elder += is_real() ? 12 : 3) {
        SamplingParams long_answer = params(0);
        long_answer.max_tokens = 30;
        RequestOptions first;
        first.priority = -1;
        ASSERT_TRUE(engine->add_request(prompt(900, elder), long_answer, first).ok());
        expect_same(run_watched(*engine, 0, 3), setting.name);
      }
      if (can_run_out) {
        EXPECT_GT(engine->stats().preemptions, 0u) << setting.name;
      }
    }
  }

  void expect_same_in_all_settings_at_once(const std::vector<int>& thread_counts) {
    learn();
    uint64_t seed = 100;
    for (const int chunk : {1, 7, 16, 64, 4096}) {
      for (const int block : {8, 16, 32}) {
        for (const int threads : thread_counts) {
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

  std::map<int, std::unique_ptr<Runtime>> runtimes_;  // by threads
  std::vector<Watched> expected_;
};

}  // namespace tinyvllm
