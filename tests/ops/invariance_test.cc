// The numerics contract, op by op: a token's result is the same bits whatever shares its batch,
// however its prompt was cut, wherever its blocks lie and for any number of threads.
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/softmax.h"
#include "tests/ops/attention_steps.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

class LinearInvariance : public testing::TestWithParam<std::tuple<Isa, DType>> {};

TEST_P(LinearInvariance, AnyBatchAndAnyThreads) {
  const auto [isa, dtype] = GetParam();
  constexpr int64_t kIn = 768;
  constexpr int64_t kOut = 48;
  constexpr int64_t kTokens = 75;
  const Weights w = random_weights(dtype, kOut, kIn, 1);
  const Weights v = random_weights(DType::kF16, kOut, kIn, 2);  // a part of another type
  const std::vector<TensorView> views = {w.view(), v.view()};
  const Matrix norm_weight = random_matrix(1, kIn, 3);
  const Matrix x = random_matrix(kTokens, kIn, 4);

  std::vector<Matrix> first;  // of one thread, all tokens at once: plain, added, gated
  for (const int threads : {1, 2, 5}) {
    OpRunner runner(isa, threads);
    const Linear linears = make_linear(runner.device(), runner.pool(), {views, {}}).value();
    const Norm n = make_norm(runner.device(), NormKind::kRms, 1e-5f,
                             {norm_weight.values.data(), DType::kF32, Shape{kIn}}, nullptr)
                       .value();
    for (const int64_t batch :
         {kTokens, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64}}) {
      std::vector<Matrix> y = {Matrix(kTokens, 2 * kOut), random_matrix(kTokens, 2 * kOut, 5),
                               Matrix(kTokens, kOut)};
      for (int64_t begin = 0; begin < kTokens; begin += batch) {
        const int64_t rows = std::min(batch, kTokens - begin);
        const auto part = [&](Matrix& m) {
          return Tensor(m.row(begin), DType::kF32, rows, m.cols);
        };
        Matrix in = x;
        runner.run([&](ExecContext& ctx) {
          norm_linear(ctx, n, linears, part(in), part(y[0]));
          linear_add(ctx, linears, part(in), part(y[1]));
          norm_linear_gated(ctx, n, linears, Gate::kSilu, part(in), part(y[2]));
        });
      }
      if (first.empty()) first = y;
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_TRUE(same_bits(y[i].values.data(), first[i].values.data(),
                              static_cast<int64_t>(y[i].values.size())))
            << "op " << i << ", batches of " << batch << ", " << threads << " threads";
      }
    }
  }
}

std::string type_name(const testing::TestParamInfo<std::tuple<Isa, DType>>& info) {
  return str_cat(isa_name(std::get<0>(info.param)), "_", dtype_name(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Types, LinearInvariance,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::ValuesIn(kWeightTypes)),
                         type_name);

class AttentionInvariance : public testing::TestWithParam<std::tuple<Isa, DType>> {};

// Chunks of every sequence, of random lengths, mixed into steps at random.
std::vector<std::vector<Chunk>> random_steps(const std::vector<int>& lengths,
                                             std::mt19937& random) {
  std::vector<int> done(lengths.size());
  std::vector<std::vector<Chunk>> steps;
  for (bool more = true; more;) {
    more = false;
    std::vector<Chunk> step;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const int left = lengths[s] - done[s];
      if (left == 0) continue;
      more = true;
      if (random() % 3 == 0) continue;  // sits this one out
      const int count = random() % 2 == 0 ? 1 : 1 + static_cast<int>(random()) % left;
      const int clamped = std::clamp(count, 1, left);
      step.push_back({static_cast<int>(s), done[s], clamped});
      done[s] += clamped;
    }
    std::shuffle(step.begin(), step.end(), random);
    if (!step.empty()) steps.push_back(std::move(step));
  }
  return steps;
}

TEST_P(AttentionInvariance, AnyChunksBlocksCompanyAndThreads) {
  const auto [isa, dtype] = GetParam();
  std::mt19937 random(1);
  for (const auto& [window, soft_cap] : {std::pair{0, 0.0f}, std::pair{50, 20.0f}}) {
    AttentionCase c{{170, 9, 66}, 6, 2, 24, 16, window, soft_cap};
    const Rope rope = make_rope(RopePairing::kHalves, c.head_dim, c.head_dim, 10000);
    const Inputs in = random_inputs(c);
    std::vector<Matrix> first;
    for (int round = 0; round < 8; ++round) {
      c.block_size = std::vector{16, 8, 1, 5, 32, 64, 24, 128}[static_cast<size_t>(round)];
      OpRunner runner(isa, 1 + round % 3);
      const DealtBlocks tables(c.lengths, c.block_size, static_cast<uint32_t>(round));
      Cache cache(c, dtype, tables.num_blocks);
      std::vector<Matrix> y = results_for(c);
      if (round == 1) {  // each sequence alone and whole
        for (int s = 0; s < 3; ++s) {
          step(runner, c, rope, in, tables, {{s, 0, c.lengths[static_cast<size_t>(s)]}}, cache, y);
        }
      } else {
        for (const auto& chunks : random_steps(c.lengths, random)) {
          step(runner, c, rope, in, tables, chunks, cache, y);
        }
      }
      if (first.empty()) first = y;
      for (size_t s = 0; s < y.size(); ++s) {
        EXPECT_TRUE(same_bits(y[s].values.data(), first[s].values.data(),
                              static_cast<int64_t>(y[s].values.size())))
            << "sequence " << s << ", blocks of " << c.block_size << ", window " << window;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionInvariance,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::Values(DType::kI8, DType::kF16, DType::kF32)),
                         type_name);

// Long enough that threads share the splits of one sequence's single token.
TEST(Invariance, LongSequencesSharedByThreads) {
  const AttentionCase c{{3000}, 2, 1, 16, 16};
  const Rope rope = make_rope(RopePairing::kHalves, c.head_dim, c.head_dim, 10000);
  const Inputs in = random_inputs(c);
  const DealtBlocks tables(c.lengths, c.block_size, 1);
  std::vector<Matrix> first;
  for (const int threads : {1, 4}) {
    OpRunner runner(supported_isas().back(), threads);
    Cache cache(c, DType::kF16, tables.num_blocks);
    std::vector<Matrix> y = results_for(c);
    step(runner, c, rope, in, tables, {{0, 0, threads == 1 ? 3000 : 2990}}, cache, y);
    for (int t = 2990; threads > 1 && t < 3000; ++t) {
      step(runner, c, rope, in, tables, {{0, t, 1}}, cache, y);
    }
    if (first.empty()) first = y;
    EXPECT_EQ(y[0].values, first[0].values);
  }
}

TEST(Invariance, NormsAndSoftmaxForAnyThreads) {
  Matrix x = random_matrix(9, 20000, 1);
  const Matrix weight = random_matrix(1, 20000, 2);
  std::vector<Matrix> first;
  for (const int threads : {1, 2, 5}) {
    OpRunner runner(supported_isas().back(), threads);
    const Norm n = make_norm(runner.device(), NormKind::kLayer, 1e-5f,
                             {weight.values.data(), DType::kF32, Shape{20000}}, nullptr)
                       .value();
    std::vector<Matrix> y(2, Matrix(9, 20000));
    runner.run([&](ExecContext& ctx) {
      norm(ctx, n, x.tensor(), y[0].tensor());
      softmax(ctx, x.tensor(), y[1].tensor());
    });
    if (first.empty()) first = y;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(y[i].values, first[i].values) << threads;
  }
}

}  // namespace
}  // namespace tinyvllm::ops
