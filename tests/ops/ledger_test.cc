// What ops tell the ledger: everything once, counted by hand here; and nothing when nobody asks.
#include "telemetry/ledger.h"

#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "tests/ops/attention_steps.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

TEST(LedgerTest, LinearMovesItsWeightsOnce) {
  OpRunner runner;
  const Weights w = random_weights(DType::kQ4_0, 64, 96, 1);
  const TensorView view = w.view();
  const Linear linears =
      make_linear(runner.device(), runner.pool(), {std::span(&view, 1), {}}).value();
  Matrix x = random_matrix(5, 96, 1);
  Matrix y(5, 64);
  Ledger ledger;
  runner.run([&](ExecContext& ctx) {
    linear(ctx, linears, x.tensor(), y.tensor());  // nobody watches
    ctx.ledger = &ledger;
    ctx.layer = 7;
    ctx.phase = Phase::kDecode;
    linear_add(ctx, linears, x.tensor(), y.tensor());
  });
  ASSERT_EQ(ledger.calls().size(), 1u);  // not the unwatched call, nor the dry run's
  const OpCall& call = ledger.calls().front();
  EXPECT_STREQ(call.op, "linear_add");
  EXPECT_EQ(call.dtype, DType::kQ4_0);
  EXPECT_EQ(call.rows, 5);
  EXPECT_EQ(call.out, 64);
  EXPECT_EQ(call.in, 96);
  EXPECT_EQ(call.flops, 2.0 * 5 * 64 * 96);
  EXPECT_EQ(call.bytes, 64 * 96 / 32 * 18 + 4.0 * (5 * 96 + 2 * 5 * 64));
  EXPECT_EQ(call.layer, 7);
  EXPECT_EQ(call.phase, Phase::kDecode);
  EXPECT_LE(call.begin_ns, call.end_ns);
}

TEST(LedgerTest, HeadNormReadsOneHeadsWeights) {
  OpRunner runner;
  const std::vector<float> weights(16, 1.0f);
  const TensorView view{weights.data(), DType::kF32, Shape{16}};
  const Norm norm = make_norm(runner.device(), NormKind::kRms, 1e-5f, view, nullptr).value();
  Matrix x = random_matrix(3, 4 * 16, 1);
  Ledger ledger;
  runner.run([&](ExecContext& ctx) {
    ctx.ledger = &ledger;
    head_norm(ctx, norm, x.tensor());
  });
  EXPECT_EQ(ledger.calls().front().bytes, 4.0 * (2 * 3 * 64 + 16));
}

TEST(LedgerTest, AttentionReadsWhatIsSeenOncePerSequence) {
  OpRunner runner;
  const DealtBlocks tables({100, 40}, 16, 1);
  const TestBatch owner(tables, {{0, 90, 10}, {1, 39, 1}});
  KvView view;
  view.spec = KvSpec{1, 2, 16, 16, DType::kF16, 64};
  view.block_size = 16;
  view.num_blocks = tables.num_blocks;
  std::vector<char> memory(kv_block_bytes(view.spec, 16) * static_cast<size_t>(view.num_blocks));
  view.data = memory.data();
  Matrix q = random_matrix(11, 4 * 16, 1);
  Matrix y(11, 4 * 16);
  Ledger ledger;
  runner.run(
      [&](ExecContext& ctx) {
        ctx.ledger = &ledger;
        attention(ctx, {4, 1, 0}, owner.batch(), {0, 0}, q.tensor(), y.tensor());
      },
      std::span(&view, 1));
  const OpCall& call = ledger.calls().front();
  // A window of 64: the ten tokens see 64 each and 73 together; the one sees all its 40.
  EXPECT_EQ(call.bytes, (73 + 40) * 2 * (16 + 16) * 2 + 2 * 4.0 * 11 * 64);
  EXPECT_EQ(call.flops, 2.0 * (10 * 64 + 40) * 4 * (16 + 16));
}

}  // namespace
}  // namespace tinyvllm::ops
