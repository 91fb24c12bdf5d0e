// What the scheduler promises, one promise a test; simulation_test.cc tries them all at once.
#include "sched/scheduler.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>

namespace tinyvllm {
namespace {

constexpr int32_t kEnd = 1000;

Request request_of(SequenceId id, int prompt, int max_tokens) {
  Request request;
  request.id = id;
  request.prompt.resize(static_cast<size_t>(prompt));
  std::iota(request.prompt.begin(), request.prompt.end(), static_cast<int32_t>(100 * id));
  request.sampling.max_tokens = max_tokens;
  return request;
}

// Schedules one step and commits it, every sample being token 7. Returns tokens planned by
// sequence.
std::map<SequenceId, int> step(Scheduler& scheduler) {
  StepPlan plan;
  scheduler.schedule(plan);
  std::map<SequenceId, int> planned;
  const int32_t token = 7;
  std::vector<std::pair<SequenceId, bool>> sequences;
  for (const SequencePlan& sequence : plan.sequences) {
    planned[sequence.sequence] = sequence.num_tokens;
    sequences.emplace_back(sequence.sequence, sequence.sample);
  }
  for (const auto& [id, sampled] : sequences) {
    scheduler.commit(id, {&token, sampled ? size_t{1} : size_t{0}});
  }
  return planned;
}

TEST(Scheduler, ALongPromptDoesNotHoldUpThoseThatDecode) {
  BlockManager blocks({{1000, 0}}, 16, true);
  Scheduler scheduler({64, 8, 4096, {kEnd}}, blocks);
  ASSERT_TRUE(scheduler.add(request_of(1, 10, 100)).ok());
  ASSERT_TRUE(scheduler.add(request_of(2, 10, 100)).ok());
  step(scheduler);
  ASSERT_TRUE(scheduler.add(request_of(3, 3000, 1)).ok());
  for (int i = 0; i < 20; ++i) {
    const auto planned = step(scheduler);
    EXPECT_EQ(planned.at(1), 1);
    EXPECT_EQ(planned.at(2), 1);
    EXPECT_EQ(planned.at(3), 62) << "the prompt has the rest of the budget";
  }
}

TEST(Scheduler, ManyThatDecodeDoNotHoldUpAPrompt) {
  BlockManager blocks({{1000, 0}}, 16, true);
  Scheduler scheduler({8, 32, 4096, {kEnd}}, blocks);
  for (SequenceId id = 1; id <= 16; ++id) ASSERT_TRUE(scheduler.add(request_of(id, 1, 500)).ok());
  for (int i = 0; i < 8; ++i) step(scheduler);
  ASSERT_TRUE(scheduler.add(request_of(99, 40, 1)).ok());
  std::map<SequenceId, int> fed;
  for (int i = 0; i < 20; ++i) {
    for (const auto& [id, tokens] : step(scheduler)) fed[id] += tokens;
  }
  EXPECT_EQ(fed[99], 40) << "a quarter of each step's 8 tokens is the prompt's";
  for (SequenceId id = 1; id <= 16; ++id) EXPECT_GE(fed[id], 7) << "the rest goes round";
}

TEST(Scheduler, PrioritiesGoBeforeArrival) {
  BlockManager blocks({{1000, 0}}, 16, true);
  Scheduler scheduler({64, 1, 4096, {kEnd}}, blocks);
  Request urgent = request_of(2, 10, 1);
  urgent.priority = -1;
  ASSERT_TRUE(scheduler.add(request_of(1, 10, 1)).ok());
  ASSERT_TRUE(scheduler.add(urgent).ok());
  EXPECT_EQ(step(scheduler).count(2), 1u);
  EXPECT_EQ(step(scheduler).count(1), 1u);
}

TEST(Scheduler, TheLastInLineIsPreemptedAndComesBack) {
  BlockManager blocks({{1 + 6, 0}}, 4, true);
  Scheduler scheduler({64, 4, 24, {kEnd}}, blocks);
  ASSERT_TRUE(scheduler.add(request_of(1, 8, 16)).ok());
  ASSERT_TRUE(scheduler.add(request_of(2, 8, 8)).ok());
  int steps = 0;
  while (scheduler.has_work()) {
    step(scheduler);
    ASSERT_LT(++steps, 60);
  }
  EXPECT_GE(scheduler.num_preemptions(), 1u);
  EXPECT_EQ(blocks.available_blocks(), 6);
}

TEST(Scheduler, SeveralAnswersShareTheirPrompt) {
  BlockManager blocks({{100, 0}}, 4, true);
  Scheduler scheduler({64, 8, 64, {kEnd}}, blocks);
  ASSERT_TRUE(scheduler.add(request_of(1, 14, 8)).ok());
  Request sibling = request_of(2, 14, 8);
  sibling.prompt = request_of(1, 14, 8).prompt;
  sibling.shares_prompt_of = 1;
  ASSERT_TRUE(scheduler.add(sibling).ok());
  EXPECT_EQ(step(scheduler), (std::map<SequenceId, int>{{1, 14}})) << "the prompt is computed once";
  EXPECT_EQ(step(scheduler), (std::map<SequenceId, int>{{1, 1}, {2, 1}}));
}

TEST(Scheduler, AnAbortedSequenceIsHeardOfNoMore) {
  BlockManager blocks({{13, 0}}, 4, true);
  Scheduler scheduler({16, 4, 48, {kEnd}}, blocks);
  ASSERT_TRUE(scheduler.add(request_of(1, 5, 30)).ok());
  StepPlan plan;
  scheduler.schedule(plan);
  ASSERT_FALSE(plan.empty());
  scheduler.abort(1);
  scheduler.abort(1);
  const int32_t late = 3;
  const Committed committed = scheduler.commit(1, {&late, 1});
  EXPECT_TRUE(committed.tokens.empty());
  EXPECT_EQ(committed.finish, FinishReason::kNone);
  EXPECT_EQ(blocks.available_blocks(), 12);
  EXPECT_FALSE(scheduler.has_work());
}

TEST(Scheduler, RefusesWhatCanNeverFitWithBothNumbers) {
  BlockManager blocks({{13, 0}}, 4, true);
  Scheduler scheduler({16, 1, 20, {kEnd}}, blocks);
  const std::string too_long = scheduler.add(request_of(1, 20, 1)).message();
  EXPECT_NE(too_long.find("20 tokens"), std::string::npos) << too_long;
  EXPECT_NE(too_long.find("holds 20"), std::string::npos) << too_long;
  EXPECT_FALSE(scheduler.add(request_of(2, 0, 1)).ok());
  EXPECT_FALSE(scheduler.add(request_of(3, 4, 0)).ok());
  EXPECT_FALSE(scheduler.has_work());
}

}  // namespace
}  // namespace tinyvllm
