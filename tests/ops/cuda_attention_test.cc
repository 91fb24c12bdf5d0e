// The card's attention against the reference, at the cases that the CPU's is tested at, and against
// itself where --deterministic promises the same bits. q, k, v and y are halves there.
#include <algorithm>

#include "ops/kv_copy.h"
#include "ops/reference/ops.h"
#include "tests/ops/attention_steps.h"
#include "tests/ops/cuda_harness.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

using Steps = std::vector<std::vector<Chunk>>;

// A cache on the card, of garbage at first: whoever reads what nobody wrote will show it. There is
// room for every block twice.
struct CardCache {
  DealtBlocks tables;
  KvView view;
  Buffer memory;
  int dealt = 0;  // blocks

  CardCache(CudaDevice& device, const AttentionCase& c, DType dtype)
      : tables(c.lengths, c.block_size, 5), dealt(tables.num_blocks) {
    view.spec = KvSpec{2, c.kv_heads, c.head_dim, c.head_dim, dtype, c.window};
    view.block_size = c.block_size;
    view.num_blocks = 2 * dealt;
    memory = device.allocate(2 * half_bytes(), "a test").value();
    view.data = memory.data();
    forget(device, 0);
    forget(device, 1);
  }
  size_t half_bytes() const {
    return kv_block_bytes(view.spec, view.block_size) * static_cast<size_t>(dealt);
  }
  void forget(CudaDevice& device, int half) {
    const std::vector<char> garbage(half_bytes(), '\xFF');
    char* to = static_cast<char*>(memory.data()) + static_cast<size_t>(half) * garbage.size();
    EXPECT_TRUE(device.upload(to, garbage.data(), garbage.size()).ok());
  }
};

class CudaAttentionTest : public CudaTest {
 protected:
  static Inputs halves(const AttentionCase& c) {
    Inputs in = random_inputs(c);
    for (auto* all : {&in.q, &in.k, &in.v}) {
      for (Matrix& m : *all) {
        for (float& v : m.values) v = f16_to_f32(f32_to_f16(v));
      }
    }
    return in;
  }

  // A step with most of every sequence, one with all but the last token, one with that.
  static Steps in_three(const AttentionCase& c) {
    Steps steps(3);
    for (int s = 0; s < static_cast<int>(c.lengths.size()); ++s) {
      const int length = c.lengths[static_cast<size_t>(s)];
      const int cut = length * 2 / 3;
      if (cut > 0) steps[0].push_back({s, 0, cut});
      if (length - 1 > cut) steps[1].push_back({s, cut, length - 1 - cut});
      steps[2].push_back({s, std::max(length - 1, cut), 1});
    }
    return steps;
  }
  static Steps one_by_one(const AttentionCase& c) {
    Steps steps;
    for (int s = 0; s < static_cast<int>(c.lengths.size()); ++s) {
      for (int t = 0; t < c.lengths[static_cast<size_t>(s)]; ++t) steps.push_back({{s, t, 1}});
    }
    return steps;
  }

  void step(const AttentionCase& c, const Rope& rope, const Inputs& in,
            const std::vector<Chunk>& chunks, const CardCache& cache, std::vector<Matrix>& y) {
    const TestBatch owner(cache.tables, chunks);
    Batch batch = owner.batch();
    const int q_width = c.heads * c.head_dim;
    const int kv_width = c.kv_heads * c.head_dim;
    Matrix qkv(batch.sizes.num_tokens, q_width + 2 * kv_width);
    Matrix out(batch.sizes.num_tokens, q_width);
    int token = 0;
    for (const Chunk& chunk : chunks) {
      const auto s = static_cast<size_t>(chunk.sequence);
      for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t, ++token) {
        std::copy_n(in.q[s].row(t), q_width, qkv.row(token));
        std::copy_n(in.k[s].row(t), kv_width, qkv.row(token) + q_width);
        std::copy_n(in.v[s].row(t), kv_width, qkv.row(token) + q_width + kv_width);
      }
    }
    const OnCard all = upload(qkv, DType::kF16);
    const OnCard outs = upload(out, DType::kF16);
    batch.data = static_cast<const int32_t*>(
        device_->stage(batch.data, Batch::buffer_elements(batch.sizes) * sizeof(int32_t)).value());
    const Tensor q = all.tensor.columns(0, q_width);
    const AttentionParams params{c.heads, 1 / std::sqrt(static_cast<float>(c.head_dim)),
                                 c.soft_cap};
    run(
        [&](ExecContext& ctx) {
          rope_kv_write(ctx, rope, batch, kLayer, q, all.tensor.columns(q_width, kv_width),
                        all.tensor.columns(q_width + kv_width, kv_width));
          attention(ctx, params, batch, kLayer, q, outs.tensor);
        },
        {&cache.view, 1});
    download(outs, out);
    token = 0;
    for (const Chunk& chunk : chunks) {
      for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t, ++token) {
        std::copy_n(out.row(token), q_width, y[static_cast<size_t>(chunk.sequence)].row(t));
      }
    }
  }

  // Every block to another place, and garbage to where it was.
  void move_blocks(CardCache& cache) {
    std::vector<BlockCopy> copies;
    for (std::vector<int32_t>& blocks : cache.tables.blocks) {
      for (int32_t& block : blocks) {
        copies.push_back({0, block, block + cache.dealt});
        block += cache.dealt;
      }
    }
    run([&](ExecContext& ctx) { copy_kv_blocks(ctx, copies); }, {&cache.view, 1});
    cache.forget(*device_, 0);
  }

  std::vector<Matrix> attend(const AttentionCase& c, DType dtype, const Rope& rope,
                             const Inputs& in, const Steps& steps, bool moves = false) {
    CardCache cache(*device_, c, dtype);
    std::vector<Matrix> y = results_for(c);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].empty()) step(c, rope, in, steps[i], cache, y);
      if (moves && i == 0) move_blocks(cache);
    }
    return y;
  }

  void expect_reference(const AttentionCase& c, DType dtype, const Rope& rope, const Inputs& in,
                        const std::vector<Matrix>& y, float tolerance) {
    const int head = c.head_dim;
    const float scale = 1 / std::sqrt(static_cast<float>(head));
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      for (int h = 0; h < c.heads; ++h) {
        const int kv = h / (c.heads / c.kv_heads);
        Matrix k(c.lengths[s], head);
        Matrix v(c.lengths[s], head);
        for (int t = 0; t < c.lengths[s]; ++t) {
          std::copy_n(in.k[s].row(t) + kv * head, head, k.row(t));
          std::copy_n(in.v[s].row(t) + kv * head, head, v.row(t));
          reference::rotate(rope, t, k.row(t));
          if (dtype == DType::kI8) store(k.row(t), head, dtype);
          if (dtype == DType::kI8) store(v.row(t), head, dtype);
        }
        for (int t = 0; t < c.lengths[s]; ++t) {
          std::vector<float> q(in.q[s].row(t) + h * head, in.q[s].row(t) + (h + 1) * head);
          reference::rotate(rope, t, q.data());
          const int first = c.window > 0 ? std::max(0, t + 1 - c.window) : 0;
          std::vector<float> expected(static_cast<size_t>(head));
          reference::attention(
              {q.data(), k.row(first), v.row(first), t + 1 - first, head, head, scale, c.soft_cap},
              expected.data());
          for (int d = 0; d < head; ++d) {
            expect_close(y[s].row(t)[h * head + d], expected[static_cast<size_t>(d)], tolerance,
                         str_cat("head_dim ", head, " ", dtype_name(dtype), " sequence ", s,
                                 " head ", h, " token ", t, " dim ", d));
          }
          if (HasFailure()) return;
        }
      }
    }
  }
};

// A score sums `head` products of rounded halves of about 1: off by some 2^-11 · 8.
constexpr float kTolerance = 32 * kHalf;

Rope rope_of(const AttentionCase& c, RopePairing pairing = RopePairing::kHalves) {
  return make_rope(pairing, c.head_dim, c.head_dim / 4 * 2, 10000);
}

TEST_F(CudaAttentionTest, AgreesWithReference) {
  for (const AttentionCase& c : kAttentionCases) {
    const Inputs in = halves(c);
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      const Rope rope = rope_of(c);
      const std::vector<Matrix> y = attend(c, dtype, rope, in, in_three(c));
      expect_reference(c, dtype, rope, in, y, kTolerance);
      if (HasFailure()) return;
    }
  }
}

// Unturned, both sides store the same bytes. A rotation that differs in its last bit may store one
// that is the next: a 127th of a K of at most 4.5, which meets a q of that size; and a score that
// is off by e moves the result by e/4 of the distance between two V.
TEST_F(CudaAttentionTest, BytesAgreeWithReference) {
  for (const AttentionCase& c : kAttentionCases) {
    const Inputs in = halves(c);
    const float flip = 4.5f * 4.5f / 127 / std::sqrt(static_cast<float>(c.head_dim)) / 4 * 9;
    for (const RopePairing pairing : {RopePairing::kHalves, RopePairing::kAdjacent}) {
      for (const bool turned : {false, true}) {
        Rope rope = rope_of(c, pairing);
        if (!turned) std::fill(rope.frequencies.begin(), rope.frequencies.end(), 0.0f);
        const std::vector<Matrix> y = attend(c, DType::kI8, rope, in, in_three(c));
        expect_reference(c, DType::kI8, rope, in, y, kTolerance + (turned ? flip : 0));
        if (HasFailure()) return;
      }
    }
  }
}

// Blocks that were copied say what they said.
TEST_F(CudaAttentionTest, CopiedBlocksAreTheSame) {
  const AttentionCase c{{64, 66, 3}, 9, 3, 64, 16};
  const Inputs in = halves(c);
  for (const DType dtype : {DType::kI8, DType::kF16, DType::kF32}) {
    const std::vector<Matrix> stayed = attend(c, dtype, rope_of(c), in, in_three(c));
    const std::vector<Matrix> moved = attend(c, dtype, rope_of(c), in, in_three(c), true);
    for (size_t s = 0; s < stayed.size(); ++s) EXPECT_EQ(stayed[s].values, moved[s].values);
  }
}

class CudaDeterministicAttentionTest : public CudaAttentionTest,
                                       public testing::WithParamInterface<DType> {
 protected:
  CudaDeterministicAttentionTest() { deterministic_ = true; }
};

// All sequences together in chunks and each alone token by token, in blocks of another size.
TEST_P(CudaDeterministicAttentionTest, DoesNotDependOnCompanyChunksAndBlocks) {
  for (AttentionCase c : kAttentionCases) {
    const Inputs in = halves(c);
    const std::vector<Matrix> together = attend(c, GetParam(), rope_of(c), in, in_three(c));
    c.block_size = c.block_size == 16 ? 8 : 16;
    const std::vector<Matrix> alone = attend(c, GetParam(), rope_of(c), in, one_by_one(c));
    for (size_t s = 0; s < together.size(); ++s) {
      EXPECT_EQ(together[s].values, alone[s].values)
          << "head_dim " << c.head_dim << " sequence " << s;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cache, CudaDeterministicAttentionTest,
                         testing::Values(DType::kI8, DType::kF16, DType::kF32),
                         [](const auto& one) { return std::string(dtype_name(one.param)); });

}  // namespace
}  // namespace tinyvllm::ops
