// Lookups are exact: rows of the table as the dequantizer reads them, times the scale.
#include "ops/embedding.h"

#include "ops/reference/dequantize.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

TEST(EmbeddingTest, RowsOfEveryType) {
  OpRunner runner(supported_isas().back(), 2);
  const DealtBlocks tables({40, 9}, 16, 1);
  const TestBatch owner(tables, {{0, 3, 37}, {1, 0, 9}});  // token ids are positions
  for (const DType dtype : kWeightTypes) {
    const Weights w = random_weights(dtype, 40, 512, 1);
    const Embedding e = make_embedding(runner.device(), w.view()).value();
    Matrix x(46, 512, 3);
    Matrix last(2, 512);
    runner.run([&](ExecContext& ctx) {
      embedding(ctx, e, owner.batch(), 3, x.tensor());
      gather_logit_rows(ctx, owner.batch(), x.tensor(), last.tensor());
    });
    std::vector<float> row(512);
    for (int64_t t = 0; t < 46; ++t) {
      const auto id = static_cast<size_t>(owner.batch().token_ids()[t]);
      reference::dequantize(dtype, w.bytes.data() + id * row_bytes(dtype, 512), 512, row.data());
      for (int64_t i = 0; i < 512; ++i) {
        ASSERT_EQ(x.row(t)[i], row[static_cast<size_t>(i)] * 3) << dtype_name(dtype);
      }
    }
    for (int64_t i = 0; i < 512; ++i) {
      ASSERT_EQ(last.row(0)[i], x.row(36)[i]);
      ASSERT_EQ(last.row(1)[i], x.row(45)[i]);
    }
  }
}

TEST(EmbeddingTest, RefusesWhatIsNoTable) {
  OpRunner runner;
  const Weights w = random_weights(DType::kF32, 4, 8, 1);
  TensorView view = w.view();
  view.shape = Shape{32};
  EXPECT_FALSE(make_embedding(runner.device(), view).ok());
}

}  // namespace
}  // namespace tinyvllm::ops
