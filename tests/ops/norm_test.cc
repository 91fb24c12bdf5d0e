// Norms against the reference. Sums run over n/8 terms per lane, so the scale is off by at most
// about n/16 + 8 roundings; LayerNorm's mean adds as many of the largest |x|.
#include "ops/norm.h"

#include "ops/reference/ops.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

class NormTest : public testing::TestWithParam<Isa> {};

TEST_P(NormTest, AgreesWithReference) {
  OpRunner runner(GetParam(), 2);
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const RowsCase& c : kNormCases) {
      Matrix x = random_matrix(c.rows, c.width, 1, 3, 5);
      const Matrix w = random_matrix(1, c.width, 2);
      const Matrix b = random_matrix(1, c.width, 3);
      const Norm n = norm_of(runner.device(), kind, w, kind == NormKind::kLayer ? &b : nullptr);
      Matrix y(c.rows, c.width, 3);
      Matrix sum = random_matrix(c.rows, c.width, 4);
      const Matrix before = sum;
      runner.run([&](ExecContext& ctx) { norm(ctx, n, x.tensor(), y.tensor()); });
      runner.run([&](ExecContext& ctx) { norm_add(ctx, n, x.tensor(), sum.tensor()); });
      std::vector<float> expected(static_cast<size_t>(c.width));
      for (int64_t r = 0; r < c.rows; ++r) {
        reference::norm(kind, kNormEps, c.width, w.row(0),
                        kind == NormKind::kLayer ? b.row(0) : nullptr, x.row(r), expected.data());
        const float roundings = static_cast<float>(c.width) / 8 + 16;
        const float tolerance = roundings * kEpsilon * (1 + largest(expected.data(), c.width));
        for (int64_t i = 0; i < c.width; ++i) {
          const float e = expected[static_cast<size_t>(i)];
          const std::string where = str_cat("[", c.rows, ", ", c.width, "] at ", r, ", ", i);
          expect_close(y.row(r)[i], e, tolerance, where);
          expect_close(sum.row(r)[i], before.row(r)[i] + e, tolerance + 4 * kEpsilon, where);
        }
      }
    }
  }
}

TEST_P(NormTest, HeadsAreNormalisedEachOnItsOwn) {
  OpRunner runner(GetParam());
  Matrix x = random_matrix(3, 4 * 20, 1, 2, 1);
  const Matrix w = random_matrix(1, 20, 2);
  const Norm n = norm_of(runner.device(), NormKind::kRms, w);
  Matrix y = x;
  runner.run([&](ExecContext& ctx) { head_norm(ctx, n, y.tensor()); });
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t h = 0; h < 4; ++h) {
      Matrix head(1, 20);
      Matrix expected(1, 20);
      std::copy_n(x.row(r) + 20 * h, 20, head.row(0));
      runner.run([&](ExecContext& ctx) { norm(ctx, n, head.tensor(), expected.tensor()); });
      for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(y.row(r)[20 * h + i], expected.row(0)[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, NormTest, testing::ValuesIn(supported_isas()),
                         [](const auto& info) { return isa_name(info.param); });

}  // namespace
}  // namespace tinyvllm::ops
