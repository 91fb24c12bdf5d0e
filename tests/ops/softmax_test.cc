// Softmax against the reference: e^x is good to 2 ulp plus |x| roundings of its argument; sums run
// over n/8 terms per lane. Top-k against sorting everything.
#include "ops/softmax.h"

#include <limits>

#include "ops/reference/ops.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

class SoftmaxTest : public testing::TestWithParam<Isa> {};

TEST_P(SoftmaxTest, AgreesWithReference) {
  OpRunner runner(GetParam(), 3);
  for (const RowsCase& c : kSoftmaxCases) {
    Matrix x = random_matrix(c.rows, c.width, 1, 10, 3);
    if (c.width > 50) x.row(0)[40] = -std::numeric_limits<float>::infinity();
    Matrix y(c.rows, c.width, 1);
    runner.run([&](ExecContext& ctx) { softmax(ctx, x.tensor(), y.tensor()); });
    std::vector<float> expected(static_cast<size_t>(c.width));
    for (int64_t r = 0; r < c.rows; ++r) {
      reference::softmax(c.width, x.row(r), expected.data());
      for (int64_t i = 0; i < c.width; ++i) {
        const float e = expected[static_cast<size_t>(i)];
        const float roundings = 100 + 8 + static_cast<float>(c.width) / 8;
        if (x.row(r)[i] < -1e30f) {
          EXPECT_EQ(y.row(r)[i], 0);
        }
        expect_close(y.row(r)[i], e, roundings * kEpsilon * e + 1.2e-38f,
                     str_cat("[", c.rows, ", ", c.width, "] at ", r, ", ", i));
      }
    }
  }
}

TEST_P(SoftmaxTest, TopKIsTheFrontOfTheSortedRow) {
  OpRunner runner(GetParam(), 2);
  for (const RowsCase& c : kSoftmaxCases) {
    Matrix x = rows_with_ties(c.rows, c.width);
    for (const int k : kTopK) {
      std::vector<Ranked> best(static_cast<size_t>(c.rows * k));
      runner.run([&](ExecContext& ctx) { top_k(ctx, x.tensor(), k, best); });
      expect_front_of_sorted_rows(x, k, best);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, SoftmaxTest, testing::ValuesIn(supported_isas()),
                         [](const auto& info) { return isa_name(info.param); });

}  // namespace
}  // namespace tinyvllm::ops
