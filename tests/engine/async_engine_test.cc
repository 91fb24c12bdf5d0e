// Many threads on one engine: every request is answered exactly once, as if it were alone, and
// shutting down ends all of them, at once or when they are done.
#include "engine/async_engine.h"

#include <atomic>
#include <future>
#include <gtest/gtest.h>

#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

class Async : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = Runtime::create({2}).value();
    engine_ = std::make_unique<AsyncEngine>(load_tiny(*runtime_));
  }

  static SamplingParams params(uint64_t seed, int max_tokens) {
    SamplingParams params;
    params.seed = seed;
    params.max_tokens = max_tokens;
    params.ignore_eos = true;
    return params;
  }
  // What the callbacks of one request brought, all answers.
  struct Collected {
    std::map<uint32_t, RequestOutput> answers;
    size_t over = 0;
    std::promise<void> done;
  };
  Result<RequestId> submit(const Prompt& prompt, SamplingParams sampling, Collected& into) {
    return submit(*engine_, prompt, std::move(sampling), into);
  }
  static Result<RequestId> submit(AsyncEngine& engine, const Prompt& prompt,
                                  SamplingParams sampling, Collected& into) {
    const auto answers = static_cast<size_t>(sampling.n);
    return engine.submit(prompt, std::move(sampling), {}, [&into, answers](RequestOutput&& news) {
      RequestOutput& answer = into.answers[news.answer];
      EXPECT_EQ(answer.finish, FinishReason::kNone) << "nothing comes after the last output";
      append(answer, std::move(news));
      into.over += answer.finish != FinishReason::kNone ? 1 : 0;
      if (into.over == answers) into.done.set_value();
    });
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<AsyncEngine> engine_;
};

TEST_F(Async, ManyThreadsGetTheAnswersOfOne) {
  constexpr int kThreads = 8;
  constexpr int kRequests = 6;
  const auto alone = load_tiny(*runtime_);
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < kThreads * kRequests; ++i) {
    ASSERT_TRUE(alone->add_request(tiny_prompt(i, 5 + i), params(1, 1 + i % 7)).ok());
    expected.push_back(token_ids(alone->run().at(0)));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int r = 0; r < kRequests; ++r) {
        const int i = t * kRequests + r;
        Collected got;
        ASSERT_TRUE(submit(tiny_prompt(i, 5 + i), params(1, 1 + i % 7), got).ok());
        got.done.get_future().wait();
        EXPECT_EQ(token_ids(got.answers.at(0)), expected[static_cast<size_t>(i)]);
        EXPECT_EQ(got.answers.at(0).finish, FinishReason::kLength);
        EXPECT_EQ(got.answers.at(0).completion_tokens, 1 + i % 7);
        const Timings& timings = got.answers.at(0).timings;
        EXPECT_GE(timings.queue_s, 0);
        EXPECT_GE(timings.ttft_s, timings.prefill_s);
        EXPECT_NEAR(timings.total_s, timings.queue_s + timings.prefill_s + timings.decode_s, 1e-9);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine_->shutdown(AsyncEngine::Shutdown::kDrain);
  EXPECT_EQ(engine_->stats().used_blocks, 0);
}

TEST_F(Async, AbortsComeFromAnywhereAtAnyTime) {
  std::vector<std::thread> threads;
  std::atomic<int> aborted{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int r = 0; r < 8; ++r) {
        Collected got;
        SamplingParams sampling = params(1, 200);
        sampling.n = 1 + r % 3;
        const auto id = submit(tiny_prompt(t, 20 + r), sampling, got);
        ASSERT_TRUE(id.ok()) << id.message();
        std::this_thread::sleep_for(std::chrono::microseconds(300 * r));
        engine_->abort(id.value());
        got.done.get_future().wait();
        for (const auto& [index, answer] : got.answers) {
          aborted += answer.finish == FinishReason::kAbort ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(aborted, 20);
  engine_->shutdown(AsyncEngine::Shutdown::kDrain);
  EXPECT_EQ(engine_->stats().used_blocks, 0);
}

TEST_F(Async, AStopStringEndsTheSequenceToo) {
  Collected whole;
  ASSERT_TRUE(submit(tiny_prompt(3, 9), params(7, 60), whole).ok());
  whole.done.get_future().wait();
  const std::string& text = whole.answers.at(0).text;
  ASSERT_GT(text.size(), 12u);
  SamplingParams sampling = params(7, 60);
  sampling.stop = {text.substr(5, 6)};
  Collected cut;
  ASSERT_TRUE(submit(tiny_prompt(3, 9), sampling, cut).ok());
  cut.done.get_future().wait();
  EXPECT_EQ(cut.answers.at(0).text, text.substr(0, text.find(sampling.stop[0])));
  EXPECT_EQ(cut.answers.at(0).finish, FinishReason::kStop);
  engine_->shutdown(AsyncEngine::Shutdown::kDrain);
  EXPECT_EQ(engine_->stats().used_blocks, 0);
}

TEST_F(Async, ShutdownDrainsOrAborts) {
  for (const auto how : {AsyncEngine::Shutdown::kDrain, AsyncEngine::Shutdown::kAbort}) {
    engine_ = std::make_unique<AsyncEngine>(load_tiny(*runtime_));
    std::vector<Collected> got(20);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(submit(tiny_prompt(i, 10 + i), params(1, 100), got[static_cast<size_t>(i)]).ok());
    }
    engine_->shutdown(how);
    int whole = 0;
    for (const Collected& each : got) {
      ASSERT_EQ(each.over, 1u);
      whole += each.answers.at(0).finish == FinishReason::kLength ? 1 : 0;
    }
    if (how == AsyncEngine::Shutdown::kDrain) {
      EXPECT_EQ(whole, 20);
    } else {
      EXPECT_LT(whole, 20);
    }
    EXPECT_EQ(engine_->stats().used_blocks, 0);
    Collected late;
    EXPECT_FALSE(submit(tiny_prompt(1, 5), params(1, 5), late).ok());
  }
}

TEST_F(Async, TwoEnginesTakeTurns) {
  const auto other = std::make_unique<AsyncEngine>(load_tiny(*runtime_, tiny_options(), "qwen3"));
  std::map<AsyncEngine*, std::vector<int32_t>> expected;
  for (AsyncEngine* engine : {engine_.get(), other.get()}) {
    Collected alone;
    ASSERT_TRUE(submit(*engine, tiny_prompt(1, 60), params(3, 30), alone).ok());
    alone.done.get_future().wait();
    expected[engine] = token_ids(alone.answers.at(0));
  }
  std::vector<std::thread> threads;
  for (AsyncEngine* engine : {engine_.get(), other.get()}) {
    threads.emplace_back([&, engine] {
      for (int i = 0; i < 10; ++i) {
        Collected got;
        ASSERT_TRUE(submit(*engine, tiny_prompt(1, 60), params(3, 30), got).ok());
        got.done.get_future().wait();
        EXPECT_EQ(token_ids(got.answers.at(0)), expected.at(engine));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Async, WhatCannotBeIsRefusedAtOnce) {
  Collected got;
  EXPECT_FALSE(submit(std::vector<int32_t>(), params(1, 1), got).ok());
  EXPECT_FALSE(submit(std::vector<int32_t>{1 << 30}, params(1, 1), got).ok());
  const auto refused = submit(std::vector<int32_t>(100000, 5), params(1, 1), got);
  EXPECT_NE(refused.message().find("100000"), std::string::npos) << refused.message();
  EXPECT_TRUE(got.answers.empty());
}

}  // namespace
}  // namespace tinyvllm
