// The card's products and the rows they are of: many, few, apart, and which others are there.
#include "ops/linear.h"
#include "tests/ops/cases.h"
#include "tests/ops/cuda_harness.h"

namespace tinyvllm::ops {
namespace {

class CudaLinearRowsTest : public CudaTest, public testing::WithParamInterface<bool> {
 protected:
  CudaLinearRowsTest() { deterministic_ = GetParam(); }
};

// Numbers of rows that share an algorithm: nothing is computed past the last one.
TEST_P(CudaLinearRowsTest, ProductsLeaveOtherRowsAlone) {
  constexpr int64_t kRows = 64, kOut = 200, kIn = 512;
  const Weights w = random_weights(DType::kF16, kOut, kIn, 1);
  const Linear linear = linear_of(*device_, pool_, {&w});
  const OnCard x = upload(random_matrix(kRows, kIn, 2), DType::kF16);
  const Matrix before = random_matrix(kRows, kOut, 3);
  for (const int64_t rows : {33, 64, 41}) {
    OnCard sums = upload(before, DType::kF32);
    Tensor part = x.tensor;
    part.rows = sums.tensor.rows = rows;
    run([&](ExecContext& ctx) { linear_add(ctx, linear, part, sums.tensor); });
    Matrix sum = before;
    download(sums, sum);
    for (int64_t t = 0; t < kRows; ++t) {
      const bool same = std::equal(sum.row(t), sum.row(t) + kOut, before.row(t));
      ASSERT_EQ(same, t >= rows) << "row " << t << " of " << rows;
    }
  }
}

// Halves that could be read as they lie, were it not for what lies between them.
TEST_P(CudaLinearRowsTest, RowsOfXMayLieApart) {
  constexpr int64_t kIn = 64, kOut = 24;
  for (const DType dtype : {DType::kF16, DType::kQ8_0}) {
    const Weights w = random_weights(dtype, kOut, kIn, 1);
    const std::vector<float> floats = on_card(w);
    const Linear plain = linear_of(*device_, pool_, {&w});
    for (const int64_t rows : {3, 70}) {
      const Matrix x = random_matrix(rows, kIn, 2, 1, 8);
      Matrix y(rows, kOut);
      const OnCard xs = upload(x, DType::kF16);
      const OnCard ys = upload(y, DType::kF16);
      run([&](ExecContext& ctx) { linear(ctx, plain, xs.tensor, ys.tensor); });
      download(ys, y);
      for (int64_t t = 0; t < rows; ++t) {
        const BoundedRow row = halves(x.row(t), kIn);
        for (int64_t r = 0; r < kOut; ++r) {
          expect_within(y.row(t)[r], as_half(product(floats.data() + r * kIn, row)),
                        str_cat(dtype_name(dtype), " of ", rows, " at ", t, ", ", r));
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(CudaLinearRowsTest, ThereMayBeManyRows) {
  constexpr int64_t kIn = 32, kOut = 16, kGates = kOut / 2;
  const Weights w = random_weights(DType::kF16, kOut, kIn, 1);
  const std::vector<float> floats = on_card(w);
  const Matrix bias = random_matrix(1, kOut, 2);
  const Linear plain = linear_of(*device_, pool_, {&w});
  const Linear biased = linear_of(*device_, pool_, {&w}, {&bias});
  const Matrix x = random_matrix(kManyRows, kIn, 3);
  Matrix y(kManyRows, kOut), gates(kManyRows, kGates), biased_gates = gates;
  const OnCard xs = upload(x, DType::kF16);
  const OnCard ys = upload(y, DType::kF16);
  const OnCard gates_there = upload(gates, DType::kF16);
  const OnCard biased_gates_there = upload(gates, DType::kF16);
  run([&](ExecContext& ctx) {
    linear(ctx, biased, xs.tensor, ys.tensor);
    linear_gated(ctx, plain, Gate::kSilu, xs.tensor, gates_there.tensor);
    linear_gated(ctx, biased, Gate::kSilu, xs.tensor, biased_gates_there.tensor);
  });
  download(ys, y);
  download(gates_there, gates);
  download(biased_gates_there, biased_gates);
  for (const int64_t t : kRowsOfMany) {
    const BoundedRow row = halves(x.row(t), kIn);
    BoundedRow e;
    for (int64_t r = 0; r < kOut; ++r) e.push_back(as_half(product(floats.data() + r * kIn, row)));
    for (size_t r = 0; r < kOut; ++r) {
      const std::string where = str_cat("row ", t, ", ", r);
      const float* b = bias.row(0) + r;
      expect_within(y.row(t)[r], as_half(plus(e[r], b[0])), where);
      if (r >= kGates) continue;
      const Bounded& up = e[kGates + r];
      expect_within(gates.row(t)[r], as_half(gated(Gate::kSilu, e[r], up)), where);
      expect_within(biased_gates.row(t)[r],
                    as_half(gated(Gate::kSilu, plus(e[r], b[0]), plus(up, b[kGates]))), where);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CudaLinearRowsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "deterministic" : "plain"; });

class CudaDeterministicLinearTest : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  CudaDeterministicLinearTest() { deterministic_ = true; }
};

TEST_P(CudaDeterministicLinearTest, ARowComesOutTheSameInAnyBatch) {
  constexpr int64_t kIn = 768, kOut = 48, kRows = 67;
  const Matrix norm_weight = random_matrix(1, kIn, 3);
  const Norm n = norm_of(*device_, NormKind::kRms, norm_weight);
  const OnCard x = upload(random_matrix(kRows, kIn, 4), DType::kF32);
  const Weights w = random_weights(GetParam(), kOut, kIn, 1);
  const Weights v = random_weights(DType::kF16, kOut, kIn, 2);  // a part of another type
  const Linear parts = linear_of(*device_, pool_, {&w, &v});
  std::vector<Matrix> first;  // all rows at once: plain, added, gated
  for (const int64_t batch : {kRows, int64_t{1}, int64_t{7}, int64_t{64}}) {
    std::vector<Matrix> y = {Matrix(kRows, 2 * kOut), random_matrix(kRows, 2 * kOut, 5),
                             Matrix(kRows, kOut)};
    const OnCard there[] = {upload(y[0], DType::kF16), upload(y[1], DType::kF32),
                            upload(y[2], DType::kF16)};
    for (int64_t begin = 0; begin < kRows; begin += batch) {
      const auto part = [&](const OnCard& all) {
        return all.tensor.row_range(begin, std::min(batch, kRows - begin));
      };
      run([&](ExecContext& ctx) {
        norm_linear(ctx, n, parts, part(x), part(there[0]));
        linear_add(ctx, parts, part(x), part(there[1]));
        norm_linear_gated(ctx, n, parts, Gate::kSilu, part(x), part(there[2]));
      });
    }
    for (size_t i = 0; i < y.size(); ++i) download(there[i], y[i]);
    if (first.empty()) first = y;
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i].values, first[i].values) << "op " << i << ", batches of " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaDeterministicLinearTest, testing::ValuesIn(kWeightTypes),
                         [](const auto& one) { return std::string(dtype_name(one.param)); });

}  // namespace
}  // namespace tinyvllm::ops
