// What cards do, done by threads of this machine: one alone, and a team with its own barriers in
// which every missing one shows sooner or later (and at once to a thread sanitizer).
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>

#include "sample/block/pack.h"
#include "sample/block/sample_row.h"
#include "tests/sample/batch.h"

namespace tinyvllm {
namespace {

using block_sampler::Best;
using block_sampler::DeviceRow;
using block_sampler::PackedRows;
using block_sampler::Scores;

// Sleeps at once, unlike std::barrier: there are more threads than cores.
class Barrier {
 public:
  explicit Barrier(int threads) {
    pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(threads));
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// What the threads of a block have in common.
struct Team {
  explicit Team(int size, int warp_size)
      : threads(size),
        lanes(warp_size),
        all(size),
        sums(static_cast<size_t>(size)),
        bests(static_cast<size_t>(size)) {
    for (int i = 0; i < size / warp_size; ++i) {
      warps.push_back(std::make_unique<Barrier>(warp_size));
    }
  }
  const int threads, lanes;
  Barrier all;
  std::vector<std::unique_ptr<Barrier>> warps;
  std::vector<uint64_t> sums;
  std::vector<Best> bests;
  block_sampler::Shared shared;
};

class HostBlock {
 public:
  HostBlock(Team& team, int thread) : team_(team), thread_(thread) {}

  int thread() const { return thread_; }
  int threads() const { return team_.threads; }
  int lane() const { return thread_ % team_.lanes; }
  int lanes() const { return team_.lanes; }
  int warp() const { return thread_ / team_.lanes; }
  int warps() const { return team_.threads / team_.lanes; }

  void sync() const { team_.all.wait(); }
  uint32_t add(uint32_t* at, uint32_t n) const {
    return __atomic_fetch_add(at, n, __ATOMIC_RELAXED);
  }
  void set_bits(uint32_t* at, uint32_t bits) const {
    __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
  }

  uint64_t warp_sum(uint64_t n) const {
    Barrier& mine = *team_.warps[static_cast<size_t>(warp())];
    mine.wait();
    team_.sums[static_cast<size_t>(thread_)] = n;
    mine.wait();
    uint64_t sum = 0;
    for (int i = 0; i < lanes(); ++i) {
      sum += team_.sums[static_cast<size_t>(warp() * lanes() + i)];
    }
    return sum;
  }
  uint64_t sum_before(uint64_t n, uint64_t* total) {
    sync();
    team_.sums[static_cast<size_t>(thread_)] = n;
    sync();
    uint64_t before = 0;
    *total = 0;
    for (int i = 0; i < threads(); ++i) {
      if (i == thread_) before = *total;
      *total += team_.sums[static_cast<size_t>(i)];
    }
    return before;
  }
  Best best(const Best& mine) {
    sync();
    team_.bests[static_cast<size_t>(thread_)] = mine;
    sync();
    Best best;
    for (const Best& other : team_.bests) best.meet(other);
    return best;
  }

 private:
  Team& team_;
  const int thread_;
};

std::vector<SampleOutput> sample_in_block(const SampleBatch& batch, int threads, int lanes) {
  PackedRows packed;
  const AheadOfTokens ahead = ahead_of_tokens(batch);
  packed.pack(ahead.rows, batch.width);
  const auto* rows = reinterpret_cast<const DeviceRow*>(packed.words().data());
  const auto* words = reinterpret_cast<const int32_t*>(rows + batch.rows.size());
  const size_t count = batch.rows.size();
  std::vector<uint32_t> scratch(
      block_sampler::scratch_bytes(static_cast<int64_t>(count), batch.width) / sizeof(uint32_t));
  std::vector<int32_t> tokens(count);
  std::vector<Scores> scores(count);
  const auto team = std::make_unique<Team>(threads, lanes);
  const auto work = [&](int thread) {
    HostBlock block(*team, thread);
    for (size_t i = 0; i < count; ++i) {
      const int64_t piece = std::max(rows[i].edited, 0) * batch.width;
      const int32_t token = block_sampler::sample_row(
          block, team->shared, rows[i], words, ahead.previous.data(),
          batch.logits.data() + rows[i].logit_row * batch.stride, static_cast<int32_t>(batch.width),
          scratch.data() + piece, &scores[i]);
      if (thread == 0) tokens[i] = token;
      block.sync();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();

  std::vector<SampleOutput> out;
  for (size_t i = 0; i < count; ++i) out.push_back(unpack(batch.rows[i], tokens[i], &scores[i]));
  return out;
}

TEST(Block, OneThreadChoosesAsTheCpu) {
  for (const int vocabulary : {1, 2, 3, 7, 31, 100, 257, 1023, 1024, 1025, 2345}) {
    const SampleBatch batch = random_batch(static_cast<uint32_t>(vocabulary), vocabulary, 300);
    expect_same(batch, sample_in_block(batch, 1, 1));
    if (HasFailure()) return;
  }
}

TEST(Block, LargeVocabulariesToo) {
  for (const int vocabulary : {20011, 151936}) {  // lists overflow, runs of ids are many
    const SampleBatch batch =
        random_batch(5, vocabulary, 3000000 / static_cast<size_t>(vocabulary));
    expect_same(batch, sample_in_block(batch, 1, 1));
    if (HasFailure()) return;
  }
}

TEST(Block, ManyThreadsChooseAsOne) {
  for (const int vocabulary : {1, 64, 1025, 7000}) {
    const SampleBatch batch = random_batch(static_cast<uint32_t>(vocabulary), vocabulary, 40);
    expect_same(batch, sample_in_block(batch, 4, 2));
    if (HasFailure()) return;
  }
}

TEST(Block, LeavesToTheCpuWhatItCannotDo) {
  SamplingParams plain;
  EXPECT_TRUE(block_sampler::supports(plain, 262144));
  EXPECT_FALSE(block_sampler::supports(plain, (int64_t{1} << 21) + 1));
  for (const auto& ask : std::vector<std::function<void(SamplingParams&)>>{
           [](SamplingParams& p) { p.typical_p = 0.5; },
           [](SamplingParams& p) { p.xtc_probability = 0.5; },
           [](SamplingParams& p) { p.dry_multiplier = 1; },
           [](SamplingParams& p) { p.logit_bias.resize(5000); },
           [](SamplingParams& p) { p.logprobs = 21; }}) {
    SamplingParams params = plain;
    ask(params);
    EXPECT_FALSE(block_sampler::supports(params, 1000));
  }
}

}  // namespace
}  // namespace tinyvllm
