// Runs RoPE, KV write and attention in steps over chunks of sequences, as an engine would: shared
// by the tests that compare with the reference and those that compare ways of cutting the work.
#pragma once

#include <cmath>

#include "ops/attention.h"
#include "ops/rope.h"
#include "tests/ops/cases.h"
#include "tests/ops/harness.h"

namespace tinyvllm::ops {

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

inline Inputs random_inputs(const AttentionCase& c) {
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
inline void step(OpRunner& runner, const AttentionCase& c, const Rope& rope, const Inputs& in,
                 const DealtBlocks& tables, const std::vector<Chunk>& chunks, Cache& cache,
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

inline std::vector<Matrix> results_for(const AttentionCase& c) {
  std::vector<Matrix> y;
  for (const int length : c.lengths) y.emplace_back(length, c.heads * c.head_dim);
  return y;
}

// One token's K or V of one head, as it comes back from the cache.
inline void store(float* x, int n, DType dtype) {
  float largest = 0;
  for (int d = 0; d < n; ++d) largest = std::max(largest, std::abs(x[d]));
  for (int d = 0; d < n; ++d) {
    if (dtype == DType::kF16) x[d] = f16_to_f32(f32_to_f16(x[d]));
    if (dtype == DType::kI8) x[d] = std::nearbyint(x[d] * (127 / largest)) * (largest / 127);
  }
}

}  // namespace tinyvllm::ops
