// Random traces against a runner that keeps a model of the cache: for every slot, which prefix its
// K and V stand for. Whatever the scheduler does with blocks, chunks, preemption, sharing and steps
// in flight, every token must see exactly its own past, and every answer must be the one and only.
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "sched/scheduler.h"

namespace tinyvllm {
namespace {

constexpr int32_t kEnd = 49;

uint64_t extend(uint64_t prefix, int32_t token) {
  uint64_t h = prefix * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(token) + 1;
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9u;
  return h ^ h >> 32;
}

// What "the model" answers after this prefix; the answer's number stands for its seed.
int32_t next_token(uint64_t prefix, uint32_t answer) {
  return static_cast<int32_t>(extend(prefix, static_cast<int32_t>(answer)) % 50);
}

// The first `count` tokens of prompt and answer, as if the answer never ended.
std::vector<int32_t> true_tokens(const Request& request, int count) {
  std::vector<int32_t> tokens = request.prompt;
  uint64_t prefix = 0;
  for (const int32_t token : tokens) prefix = extend(prefix, token);
  while (static_cast<int>(tokens.size()) < count) {
    tokens.push_back(next_token(prefix, request.answer));
    prefix = extend(prefix, tokens.back());
  }
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

std::vector<int32_t> true_answer(const Request& request, int longest) {
  uint64_t prefix = 0;
  for (const int32_t token : request.prompt) prefix = extend(prefix, token);
  std::vector<int32_t> answer;
  const int room = longest - static_cast<int>(request.prompt.size());
  while (static_cast<int>(answer.size()) < std::min(request.sampling.max_tokens, room)) {
    answer.push_back(next_token(prefix, request.answer));
    if (answer.back() == kEnd) break;
    prefix = extend(prefix, answer.back());
  }
  return answer;
}

struct Trace {
  int block_size, budget, max_seqs, depth;
  std::vector<KvGroup> groups;
  bool prefix_caching, several_tokens;
  std::vector<std::pair<int, Request>> arrivals;  // step, request
  std::map<SequenceId, int> aborts;               // at step
};

Trace random_trace(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Trace trace;
  trace.block_size = pick(1, 6);
  trace.budget = pick(0, 3) == 0 ? pick(1, 3) : pick(4, 40);
  trace.max_seqs = pick(1, 8);
  trace.depth = pick(0, 1);
  trace.prefix_caching = pick(0, 3) > 0;
  trace.several_tokens = pick(0, 3) == 0;
  trace.groups.push_back({pick(0, 1) == 0 ? pick(4, 12) : pick(13, 80), 0});
  if (pick(0, 1) == 0) {
    const int window = pick(1, 12);
    trace.groups.push_back({window / trace.block_size + 3 + pick(0, 12), window});
  }
  const bool priorities = pick(0, 3) == 0;
  SequenceId id = 1;
  for (int requests = pick(1, 12); requests > 0; --requests) {
    Request request;
    request.id = id++;
    const int shared = pick(0, 20);  // prompts share beginnings, so that prefixes are found
    for (int i = pick(1, 30); i > 0; --i) {
      const int at = static_cast<int>(request.prompt.size());
      request.prompt.push_back(at < shared ? at % 7 : pick(0, 48));
    }
    request.sampling.max_tokens = pick(1, 20);
    request.priority = priorities ? pick(0, 2) : 0;
    if (pick(0, 7) == 0) request.cache_salt = "tenant";
    request.reuse_prefix = pick(0, 7) > 0;
    request.awaits_tokens = pick(0, 3) == 0;
    if (!request.reuse_prefix && pick(0, 1) == 0) request.sampling.prompt_logprobs = 0;
    const int step = pick(0, 30);
    trace.arrivals.emplace_back(step, request);
    for (uint32_t answer = 1; pick(0, 5) == 0; ++answer) {  // sometimes several answers
      Request sibling = request;
      sibling.id = id++;
      sibling.shares_prompt_of = request.id;
      sibling.answer = answer;
      sibling.sampling.prompt_logprobs.reset();
      trace.arrivals.emplace_back(step, sibling);
    }
    if (pick(0, 6) == 0) trace.aborts[request.id] = step + pick(0, 20);
  }
  return trace;
}

// What the traces made happen: a check of something that never happens is no check.
struct Counts {
  uint64_t preemptions = 0;
  uint64_t prefix_hits = 0;
  uint64_t copies = 0;
  uint64_t by_reference = 0;
  uint64_t scored = 0;
};

class Simulation {
 public:
  Simulation(const Trace& trace, uint64_t seed, Counts& counts)
      : trace_(trace),
        counts_(counts),
        random_(seed),
        manager_(trace.groups, trace.block_size, trace.prefix_caching),
        scheduler_({trace.budget, trace.max_seqs, kMaxLength, {kEnd}, kMaxScored}, manager_) {
    for (const KvGroup& group : trace.groups) {
      cache_.emplace_back(static_cast<size_t>(group.num_blocks * trace.block_size), 0);
    }
  }

  void run() {
    const int longest = std::min(kMaxLength, manager_.capacity_tokens());
    int last_arrival = 0;
    int work = 0;
    for (const auto& [step, request] : trace_.arrivals) {
      last_arrival = std::max(last_arrival, step);
      work += static_cast<int>(request.prompt.size()) + request.sampling.max_tokens;
    }
    // The sequence that goes first moves on at least every few steps; nobody waits longer than that
    // takes for everyone's work, each token perhaps computed again and again by preemption.
    const int patience = last_arrival + 100 + 40 * work;
    int step = 0;
    for (; step < patience; ++step) {
      for (const auto& [when, request] : trace_.arrivals) {
        if (when == step) arrive(request, longest);
      }
      for (const auto& [id, when] : trace_.aborts) {
        if (when == step && asked_.count(id) != 0 && !answers_[id].over()) {
          scheduler_.abort(id);
          answers_[id].aborted = true;
        }
      }
      StepPlan plan;
      scheduler_.schedule(plan);
      if (!plan.empty()) in_flight_.push_back(submit(plan));
      if (in_flight_.size() > (plan.empty() ? 0u : static_cast<size_t>(trace_.depth))) commit();
      if (step > last_arrival && in_flight_.empty() && !scheduler_.has_work()) break;
      if (testing::Test::HasFailure()) return;
    }
    ASSERT_LT(step, patience) << "somebody never finished: " << scheduler_.num_running() << " run, "
                              << scheduler_.num_waiting() << " wait, "
                              << manager_.available_blocks() << " blocks are available";
    counts_.preemptions += scheduler_.num_preemptions();
    counts_.prefix_hits += manager_.prefix_stats().hit_tokens;
    for (const auto& [id, request] : asked_) {
      const Answer& answer = answers_[id];
      const std::vector<int32_t> truth = true_answer(request, longest);
      if (answer.aborted) {
        ASSERT_LE(answer.tokens.size(), truth.size());
        ASSERT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), truth.begin()));
      } else {
        ASSERT_EQ(answer.tokens, truth) << "sequence " << id;
        // Of a prompt of one token there is nothing to score.
        ASSERT_EQ(scored_[id].size(),
                  request.sampling.prompt_logprobs ? request.prompt.size() - 1 : 0);
        counts_.scored += scored_[id].size();
        ASSERT_EQ(answer.finish,
                  truth.back() == kEnd ? FinishReason::kStop : FinishReason::kLength);
      }
    }
    for (size_t group = 0; group < trace_.groups.size(); ++group) {
      ASSERT_EQ(manager_.pool(static_cast<int>(group)).available(),
                trace_.groups[group].num_blocks - 1)
          << "a block was lost";
    }
  }

 private:
  static constexpr int kMaxLength = 48;
  static constexpr int kMaxScored = 5;

  struct Answer {
    std::vector<int32_t> tokens;
    FinishReason finish = FinishReason::kNone;
    bool aborted = false;
    bool over() const { return aborted || finish != FinishReason::kNone; }
  };
  struct Done {
    std::vector<std::pair<SequenceId, std::vector<int32_t>>> results;
  };

  void arrive(const Request& request, int longest) {
    const bool fits = static_cast<int>(request.prompt.size()) < longest;
    ASSERT_EQ(scheduler_.add(request).ok(), fits);
    if (fits) asked_[request.id] = request;
  }

  // Executes a step the way a device would: copies first, then tokens in order, each seeing its
  // past.
  Done submit(const StepPlan& plan) {
    EXPECT_LE(static_cast<int>(plan.tokens.size()), trace_.budget);
    EXPECT_LE(scheduler_.num_running(), trace_.max_seqs);
    const auto size = static_cast<size_t>(trace_.block_size);
    counts_.copies += plan.copies.size();
    for (const BlockCopy& copy : plan.copies) {
      auto& cache = cache_[static_cast<size_t>(copy.group)];
      std::copy_n(cache.begin() + static_cast<ptrdiff_t>(copy.from * size), size,
                  cache.begin() + static_cast<ptrdiff_t>(copy.to * size));
    }
    Done done;
    std::vector<int32_t> rows;
    size_t token = 0;
    int scored = 0;
    for (const SequencePlan& sequence : plan.sequences) {
      std::vector<int32_t> past = true_tokens(asked_.at(sequence.sequence), sequence.position);
      for (int i = 0; i < sequence.num_tokens; ++i, ++token) {
        const InputToken input = plan.tokens[token];
        counts_.by_reference += is_from_row(input) ? 1 : 0;
        EXPECT_FALSE(is_from_row(input) && asked_.at(sequence.sequence).awaits_tokens)
            << "sequence " << sequence.sequence << " is fed a token that nobody has";
        past.push_back(is_from_row(input) ? previous_rows_.at(static_cast<size_t>(~input)) : input);
      }
      write_and_check(sequence, past);
      for (int i = 0; sequence.all_logits && i < sequence.num_tokens; ++i, ++scored) {
        const int judged = sequence.position + i + 1;
        if (judged < sequence.prompt_tokens) scored_[sequence.sequence].insert(judged);
      }
      std::vector<int32_t> sampled;
      if (sequence.sample) {
        sampled = sample(sequence, past);
        rows.push_back(sampled.empty() ? 0 : sampled.front());
      }
      done.results.emplace_back(sequence.sequence, std::move(sampled));
    }
    EXPECT_EQ(token, plan.tokens.size());
    EXPECT_LE(scored, kMaxScored);
    previous_rows_ = rows;
    return done;
  }

  void write_and_check(const SequencePlan& sequence, const std::vector<int32_t>& past) {
    std::vector<uint64_t> prefixes;
    for (const int32_t token : past)
      prefixes.push_back(extend(prefixes.empty() ? 0 : prefixes.back(), token));
    for (size_t group = 0; group < cache_.size(); ++group) {
      const auto slot = [&](int position) -> uint64_t& {
        const int32_t block =
            (*sequence.block_tables)[group].at(static_cast<size_t>(position / trace_.block_size));
        EXPECT_NE(block, kNullBlock);
        return cache_[group].at(
            static_cast<size_t>(block * trace_.block_size + position % trace_.block_size));
      };
      const int window = trace_.groups[group].window;
      for (int position = sequence.position; position < static_cast<int>(past.size()); ++position) {
        slot(position) = prefixes[static_cast<size_t>(position)];
        const int first = window == 0 ? 0 : std::max(0, position - window + 1);
        for (int seen = first; seen <= position; ++seen) {
          ASSERT_EQ(slot(seen), prefixes[static_cast<size_t>(seen)])
              << "sequence " << sequence.sequence << " at " << position
              << " sees another's cache at " << seen;
        }
      }
    }
  }

  // One token, or, where the trace has it so, none to three.
  std::vector<int32_t> sample(const SequencePlan& sequence, const std::vector<int32_t>& past) {
    const int count = trace_.several_tokens ? static_cast<int>(random_() % 4) : 1;
    uint64_t prefix = 0;
    for (const int32_t token : past) prefix = extend(prefix, token);
    std::vector<int32_t> tokens;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(next_token(prefix, sequence.answer));
      prefix = extend(prefix, tokens.back());
    }
    return tokens;
  }

  void commit() {
    const Done done = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const auto& [id, tokens] : done.results) {
      const Committed committed = scheduler_.commit(id, tokens);
      Answer& answer = answers_[id];
      ASSERT_FALSE(answer.over() && !committed.tokens.empty()) << "a token after the end";
      answer.tokens.insert(answer.tokens.end(), committed.tokens.begin(), committed.tokens.end());
      if (committed.finish != FinishReason::kNone) answer.finish = committed.finish;
    }
  }

  const Trace& trace_;
  Counts& counts_;
  std::mt19937_64 random_;
  BlockManager manager_;
  Scheduler scheduler_;
  std::vector<std::vector<uint64_t>> cache_;  // [group][slot]: the prefix whose K and V are there
  std::map<SequenceId, Request> asked_;
  std::map<SequenceId, Answer> answers_;
  std::map<SequenceId, std::set<int>> scored_;  // positions of prompts
  std::vector<int32_t> previous_rows_;
  std::deque<Done> in_flight_;
};

TEST(Simulation, TenThousandRandomTraces) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 10000; ++seed) {
    const Trace trace = random_trace(seed);
    Simulation(trace, seed, counts).run();
    ASSERT_FALSE(HasFailure()) << "trace " << seed;
  }
  EXPECT_GT(counts.preemptions, 10000u);
  EXPECT_GT(counts.prefix_hits, 10000u);
  EXPECT_GT(counts.copies, 1000u);
  EXPECT_GT(counts.by_reference, 10000u);
  EXPECT_GT(counts.scored, 1000u);
}

}  // namespace
}  // namespace tinyvllm
