// RoPE, the write to the paged cache and attention over it, together, against a reference that
// knows nothing of pages. Scores are sums of k_dim products; an error e of a score changes weights
// by a factor 1 + e, and sums of weights run over the tokens seen.
#include "ops/attention.h"

#include <limits>

#include "ops/reference/ops.h"
#include "tests/ops/attention_steps.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

// Two steps: the first two thirds of every sequence, then the rest.
std::vector<Matrix> run(OpRunner& runner, const AttentionCase& c, const Rope& rope,
                        const Inputs& in, DType dtype) {
  const DealtBlocks tables(c.lengths, c.block_size, 5);
  Cache cache(c, dtype, tables.num_blocks);
  std::vector<Matrix> y = results_for(c);
  std::vector<Chunk> first;
  std::vector<Chunk> second;
  for (int s = 0; s < static_cast<int>(c.lengths.size()); ++s) {
    const int length = c.lengths[static_cast<size_t>(s)];
    const int cut = length * 2 / 3;
    if (cut > 0) first.push_back({s, 0, cut});
    second.push_back({s, cut, length - cut});
  }
  if (!first.empty()) step(runner, c, rope, in, tables, first, cache, y);
  step(runner, c, rope, in, tables, second, cache, y);
  return y;
}

class AttentionTest : public testing::TestWithParam<std::tuple<Isa, DType>> {};

TEST_P(AttentionTest, AgreesWithReference) {
  const auto [isa, dtype] = GetParam();
  OpRunner runner(isa, 2);
  for (const RopePairing pairing : {RopePairing::kHalves, RopePairing::kAdjacent}) {
    for (const AttentionCase& c : kAttentionCases) {
      const int head = c.head_dim;
      Rope rope = make_rope(pairing, head, head / 4 * 2, 10000);
      // Rotations may differ in the last bit, which may cost a whole step of 1/127: so none here.
      if (dtype == DType::kI8) std::fill(rope.frequencies.begin(), rope.frequencies.end(), 0.0f);
      const Inputs in = random_inputs(c);
      const std::vector<Matrix> y = run(runner, c, rope, in, dtype);
      for (size_t s = 0; s < c.lengths.size(); ++s) {
        const int length = c.lengths[s];
        for (int h = 0; h < c.heads; ++h) {
          const int kv = h / (c.heads / c.kv_heads);
          Matrix k(length, head);
          Matrix v(length, head);
          for (int t = 0; t < length; ++t) {
            std::copy_n(in.k[s].row(t) + kv * head, head, k.row(t));
            reference::rotate(rope, t, k.row(t));
            std::copy_n(in.v[s].row(t) + kv * head, head, v.row(t));
            store(k.row(t), head, dtype);
            store(v.row(t), head, dtype);
          }
          for (int t = 0; t < length; ++t) {
            std::vector<float> q(in.q[s].row(t) + h * head, in.q[s].row(t) + (h + 1) * head);
            reference::rotate(rope, t, q.data());
            const int first = c.window > 0 ? std::max(0, t + 1 - c.window) : 0;
            std::vector<float> expected(static_cast<size_t>(head));
            const float scale = 1 / std::sqrt(static_cast<float>(head));
            reference::attention({q.data(), k.row(first), v.row(first), t + 1 - first, head, head,
                                  scale, c.soft_cap},
                                 expected.data());
            // |q|·|k| is about head at most 4 times; F16 rounds K apart when rotations differ in
            // the last bit: 2^-11 of a k, weighted by one q.
            const float score_error = 4 * (static_cast<float>(head) + 16) * kEpsilon *
                                          std::sqrt(static_cast<float>(head)) +
                                      (dtype == DType::kF16 ? 0x1p-11f * 4 * 4 * scale : 0);
            const float tolerance =
                4 * (2 * score_error + (static_cast<float>(t + 1 - first) / 8 + 16) * kEpsilon);
            for (int d = 0; d < head; ++d) {
              expect_close(y[s].row(t)[h * head + d], expected[static_cast<size_t>(d)], tolerance,
                           str_cat("sequence ", s, " head ", h, " token ", t, " dim ", d));
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::Values(DType::kI8, DType::kF16, DType::kF32)),
                         [](const auto& info) {
                           return str_cat(isa_name(std::get<0>(info.param)), "_",
                                          dtype_name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tinyvllm::ops
