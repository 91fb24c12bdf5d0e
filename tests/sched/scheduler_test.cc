// The scheduler against a runner that computes nothing but checks everything: each token fed once,
// in order, to the block where it belongs, with and without a step in flight.
#include "sched/scheduler.h"

#include <deque>
#include <gtest/gtest.h>
#include <map>

namespace tinyvllm {
namespace {

constexpr int32_t kEnd = 1000;
constexpr int kBlockSize = 4;

// "Samples" a token that follows from the sequence and the position alone, and verifies that what
// it is fed is what it sampled before.
class FakeRunner {
 public:
  FakeRunner(std::map<SequenceId, std::vector<int32_t>> prompts, int end_at)
      : fed_(std::move(prompts)), end_at_(end_at) {}

  std::vector<int32_t> submit(const StepPlan& plan) {
    std::vector<int32_t> sampled;
    auto input = plan.tokens.begin();
    for (const SequencePlan& sequence : plan.sequences) {
      std::vector<int32_t>& truth = fed_[sequence.sequence];
      int position = sequence.position;
      EXPECT_EQ(position, next_[sequence.sequence]) << "tokens are fed in order, each once";
      for (int i = 0; i < sequence.num_tokens; ++i, ++input) {
        const int32_t token =
            is_from_row(*input) ? previous_.at(static_cast<size_t>(~*input)) : *input;
        EXPECT_EQ(token, truth.at(static_cast<size_t>(position)));
        EXPECT_LT(position / kBlockSize, static_cast<int>(sequence.block_tables->at(0).size()));
        position += 1;
      }
      next_[sequence.sequence] = position;
      if (!sequence.sample) continue;
      EXPECT_EQ(static_cast<size_t>(position), truth.size())
          << "only the last known token is sampled";
      truth.push_back(position == end_at_ ? kEnd : position * 7 % 900);
      sampled.push_back(truth.back());
    }
    previous_ = sampled;
    return sampled;
  }

 private:
  std::map<SequenceId, std::vector<int32_t>> fed_;
  std::map<SequenceId, int> next_;
  std::vector<int32_t> previous_;
  const int end_at_;
};

struct Answer {
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::kNone;
};

// Runs to the end with `depth` steps planned ahead of the one being committed.
std::map<SequenceId, Answer> run(Scheduler& scheduler, FakeRunner& runner, int depth, int budget) {
  std::map<SequenceId, Answer> answers;
  std::deque<std::pair<StepPlan, std::vector<int32_t>>> in_flight;
  for (int steps = 0; steps < 1000; ++steps) {
    StepPlan plan = scheduler.schedule();
    if (!plan.empty()) {
      EXPECT_LE(static_cast<int>(plan.tokens.size()), budget);
      std::vector<int32_t> sampled = runner.submit(plan);
      in_flight.emplace_back(std::move(plan), std::move(sampled));
    } else if (in_flight.empty()) {
      EXPECT_FALSE(scheduler.has_work());
      return answers;
    }
    if (in_flight.size() <= static_cast<size_t>(depth) && !plan.empty()) {
      continue;
    }
    auto [done, sampled] = std::move(in_flight.front());
    in_flight.pop_front();
    size_t row = 0;
    for (const SequencePlan& sequence : done.sequences) {
      const std::span<const int32_t> tokens = sequence.sample
                                                  ? std::span<const int32_t>(&sampled[row++], 1)
                                                  : std::span<const int32_t>();
      const Committed committed = scheduler.commit(sequence.sequence, tokens);
      Answer& answer = answers[sequence.sequence];
      answer.tokens.insert(answer.tokens.end(), committed.tokens.begin(), committed.tokens.end());
      if (committed.finish != FinishReason::kNone) {
        EXPECT_EQ(answer.finish, FinishReason::kNone) << "a sequence finishes once";
        answer.finish = committed.finish;
      }
    }
  }
  ADD_FAILURE() << "did not finish";
  return answers;
}

std::vector<int32_t> prompt_of(int length) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(i + 1);
  return prompt;
}

Request request_of(SequenceId id, int prompt, int max_tokens) {
  Request request;
  request.id = id;
  request.prompt = prompt_of(prompt);
  request.sampling.max_tokens = max_tokens;
  return request;
}

TEST(Scheduler, EveryTokenOnceAtAnyChunkingDepthAndNumberOfSequences) {
  for (const int depth : {0, 1}) {
    for (const int budget : {1, 3, 7, 100}) {
      for (const int sequences : {1, 3}) {
        BlockManager blocks(2, kBlockSize, 1 + 12);
        Scheduler scheduler({budget, sequences, 48, {kEnd}}, blocks);
        std::map<SequenceId, std::vector<int32_t>> prompts;
        for (SequenceId id = 1; id <= 5; ++id) {
          ASSERT_TRUE(scheduler.add(request_of(id, static_cast<int>(2 * id), 6)).ok());
          prompts[id] = prompt_of(static_cast<int>(2 * id));
        }
        FakeRunner runner(prompts, /*end_at=*/-1);
        const auto answers = run(scheduler, runner, depth, budget);
        ASSERT_EQ(answers.size(), 5u);
        for (const auto& [id, answer] : answers) {
          EXPECT_EQ(answer.finish, FinishReason::kLength);
          ASSERT_EQ(answer.tokens.size(), 6u);
          for (size_t i = 0; i < 6; ++i) {
            EXPECT_EQ(answer.tokens[i], static_cast<int32_t>((2 * id + i) * 7 % 900));
          }
        }
        EXPECT_EQ(blocks.free_blocks(), 12) << "no block is lost";
      }
    }
  }
}

TEST(Scheduler, AnEndTokenEndsItAndVoidsTheStepInFlight) {
  for (const int depth : {0, 1}) {
    BlockManager blocks(1, kBlockSize, 1 + 12);
    Scheduler scheduler({16, 1, 48, {kEnd}}, blocks);
    ASSERT_TRUE(scheduler.add(request_of(1, 5, 30)).ok());
    FakeRunner runner({{1, prompt_of(5)}}, /*end_at=*/8);
    const Answer answer = run(scheduler, runner, depth, 16)[1];
    EXPECT_EQ(answer.finish, FinishReason::kStop);
    EXPECT_EQ(answer.tokens, (std::vector<int32_t>{35, 42, 49, kEnd}));
    EXPECT_EQ(blocks.free_blocks(), 12);
  }
}

TEST(Scheduler, AnAbortFreesItsBlocksOnceNothingIsInFlight) {
  BlockManager blocks(1, kBlockSize, 1 + 12);
  Scheduler scheduler({16, 1, 48, {kEnd}}, blocks);
  ASSERT_TRUE(scheduler.add(request_of(1, 5, 30)).ok());
  ASSERT_TRUE(scheduler.add(request_of(2, 5, 30)).ok());
  ASSERT_FALSE(scheduler.schedule().empty());
  scheduler.abort(2);
  scheduler.abort(1);
  EXPECT_LT(blocks.free_blocks(), 12) << "a step in flight may still write";
  const int32_t late = 3;
  EXPECT_TRUE(scheduler.commit(1, {&late, 1}).tokens.empty());
  EXPECT_EQ(blocks.free_blocks(), 12);
  EXPECT_FALSE(scheduler.has_work());
}

TEST(Scheduler, RefusesWhatCanNeverFitWithBothNumbers) {
  BlockManager blocks(1, kBlockSize, 1 + 12);
  Scheduler scheduler({16, 1, 20, {kEnd}}, blocks);
  EXPECT_NE(scheduler.add(request_of(1, 20, 1)).message().find("20 tokens"), std::string::npos);
  EXPECT_FALSE(scheduler.add(request_of(2, 0, 1)).ok());
  EXPECT_FALSE(scheduler.add(request_of(3, 4, 0)).ok());
  EXPECT_FALSE(scheduler.has_work());
}

}  // namespace
}  // namespace tinyvllm
