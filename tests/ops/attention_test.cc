// RoPE, the write to the paged cache and attention over it, together, against a reference that
// knows nothing of pages. Scores are sums of k_dim products; an error e of a score changes weights
// by a factor 1 + e, and sums of weights run over the tokens seen.
#include "ops/attention.h"

#include <limits>

#include "ops/reference/ops.h"
#include "ops/rope.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

// One group of two layers, so that a layer's offset is wrong nowhere by luck. Fresh memory is NaN:
// whoever reads what nobody wrote will show it.
struct Cache {
  KvView view;
  std::vector<char> memory;

  Cache(const AttentionCase& c, DType dtype, int num_blocks) {
    view.spec = KvSpec{2, c.kv_heads, c.head_dim, c.head_dim, dtype, c.window};
    view.block_size = c.block_size;
    view.num_blocks = num_blocks;
    memory.assign(kv_block_bytes(view.spec, c.block_size) * static_cast<size_t>(num_blocks),
                  '\xFF');
    view.data = memory.data();
  }
};

// Whole sequences, before rotation.  q: [length, heads · head_dim], k, v: [length, kv_heads · …]
struct Inputs {
  std::vector<Matrix> q, k, v;
};

Inputs random_inputs(const AttentionCase& c) {
  Inputs in;
  uint32_t seed = 10;
  for (const int length : c.lengths) {
    in.q.push_back(random_matrix(length, c.heads * c.head_dim, ++seed));
    in.k.push_back(random_matrix(length, c.kv_heads * c.head_dim, ++seed));
    in.v.push_back(random_matrix(length, c.kv_heads * c.head_dim, ++seed));
  }
  return in;
}

constexpr KvLayer kLayer{0, 1};

// One step: rotates and writes the chunks' tokens, attends, puts results in their rows of `y`.
void step(OpRunner& runner, const AttentionCase& c, const Rope& rope, const Inputs& in,
          const BlockTables& tables, const std::vector<Chunk>& chunks, Cache& cache,
          std::vector<Matrix>& y) {
  const TestBatch owner(tables, chunks);
  const Batch& batch = owner.batch();
  const int q_width = c.heads * c.head_dim;
  const int kv_width = c.kv_heads * c.head_dim;
  Matrix qkv(batch.sizes.num_tokens, q_width + 2 * kv_width);
  Matrix out(batch.sizes.num_tokens, q_width, 4);
  int token = 0;
  for (const Chunk& chunk : chunks) {
    const auto s = static_cast<size_t>(chunk.sequence);
    for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t) {
      float* row = qkv.row(token++);
      std::copy_n(in.q[s].row(t), q_width, row);
      std::copy_n(in.k[s].row(t), kv_width, row + q_width);
      std::copy_n(in.v[s].row(t), kv_width, row + q_width + kv_width);
    }
  }
  const Tensor all = qkv.tensor();
  const Tensor q = all.columns(0, q_width);
  const Tensor k = all.columns(q_width, kv_width);
  const Tensor v = all.columns(q_width + kv_width, kv_width);
  const AttentionParams params{c.heads, 1 / std::sqrt(static_cast<float>(c.head_dim)), c.soft_cap};
  runner.run(
      [&](ExecContext& ctx) {
        rope_kv_write(ctx, rope, batch, kLayer, q, k, v);
        attention(ctx, params, batch, kLayer, q, out.tensor());
      },
      std::span(&cache.view, 1));
  token = 0;
  for (const Chunk& chunk : chunks) {
    for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t) {
      std::copy_n(out.row(token++), q_width, y[static_cast<size_t>(chunk.sequence)].row(t));
    }
  }
}

std::vector<Matrix> results_for(const AttentionCase& c) {
  std::vector<Matrix> y;
  for (const int length : c.lengths) y.emplace_back(length, c.heads * c.head_dim);
  return y;
}

// Two steps: the first two thirds of every sequence, then the rest.
std::vector<Matrix> run(OpRunner& runner, const AttentionCase& c, const Rope& rope,
                        const Inputs& in, DType dtype) {
  const BlockTables tables(c.lengths, c.block_size, 5);
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

float stored(float x, DType dtype) { return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(x)) : x; }

class AttentionTest : public testing::TestWithParam<std::tuple<Isa, DType>> {};

TEST_P(AttentionTest, AgreesWithReference) {
  const auto [isa, dtype] = GetParam();
  OpRunner runner(isa, 2);
  for (const RopePairing pairing : {RopePairing::kHalves, RopePairing::kAdjacent}) {
    for (const AttentionCase& c : kAttentionCases) {
      const int head = c.head_dim;
      const Rope rope = make_rope(pairing, head, head / 4 * 2, 10000);
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
            for (int d = 0; d < head; ++d) {
              k.row(t)[d] = stored(k.row(t)[d], dtype);
              v.row(t)[d] = stored(in.v[s].row(t)[kv * head + d], dtype);
            }
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
                                          testing::Values(DType::kF16, DType::kF32)),
                         [](const auto& info) {
                           return str_cat(isa_name(std::get<0>(info.param)), "_",
                                          dtype_name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tinyvllm::ops
