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
    Matrix x = random_matrix(c.rows, c.width, 2);
    for (float& v : x.values) v = std::round(v * 50);  // many equal values
    if (c.width > 20) {
      x.row(0)[7] = std::numeric_limits<float>::quiet_NaN();
      x.row(0)[11] = -std::numeric_limits<float>::infinity();
      x.row(0)[c.width - 1] = std::numeric_limits<float>::infinity();
    }
    for (const int k : {0, 1, 5, 64, 1000}) {
      std::vector<Ranked> best(static_cast<size_t>(c.rows * k));
      runner.run([&](ExecContext& ctx) { top_k(ctx, x.tensor(), k, best); });
      for (int64_t r = 0; r < c.rows; ++r) {
        std::vector<int32_t> order(static_cast<size_t>(c.width));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          const float u = x.row(r)[a];
          const float v = x.row(r)[b];
          return std::isnan(u) || std::isnan(v) ? !std::isnan(u) && std::isnan(v) : u > v;
        });
        for (int i = 0; i < k; ++i) {
          const int32_t id = i < c.width ? order[static_cast<size_t>(i)] : -1;
          ASSERT_EQ(best[static_cast<size_t>(r * k + i)].id, id)
              << "k " << k << " width " << c.width << " place " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, SoftmaxTest, testing::ValuesIn(supported_isas()),
                         [](const auto& info) { return isa_name(info.param); });

}  // namespace
}  // namespace tinyvllm::ops
