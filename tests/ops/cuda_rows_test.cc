// The card's norms, softmax, choices and lookups against the reference, at the cases that the CPU's
// are tested at. Each reads floats or halves and stores one of them, as models do.
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/softmax.h"
#include "tests/ops/cases.h"
#include "tests/ops/cuda_harness.h"

namespace tinyvllm::ops {
namespace {

TEST_F(CudaTest, NormsAgreeWithReference) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const RowsCase& c : kNormCases) {
      const Matrix x = random_matrix(c.rows, c.width, 1, 3, 5);
      const Matrix w = random_matrix(1, c.width, 2);
      const Matrix b = random_matrix(1, c.width, 3);
      const Matrix* const bias = kind == NormKind::kLayer ? &b : nullptr;
      const Norm n = norm_of(*device_, kind, w, bias);
      Matrix y(c.rows, c.width, 3);
      Matrix y_half = y, in_place = x;
      Matrix sum = random_matrix(c.rows, c.width, 4), sum_of_halves = sum;
      const Matrix before = sum;
      const OnCard xs = upload(x, DType::kF32);
      const OnCard x_halves = upload(x, DType::kF16);
      const OnCard ys = upload(y, DType::kF32);
      const OnCard y_halves = upload(y, DType::kF16);
      const OnCard sums = upload(sum, DType::kF32);
      const OnCard sums_of_halves = upload(sum, DType::kF32);
      run([&](ExecContext& ctx) {
        norm(ctx, n, xs.tensor, ys.tensor);
        norm(ctx, n, xs.tensor, y_halves.tensor);
        norm_add(ctx, n, xs.tensor, sums.tensor);
        norm_add(ctx, n, x_halves.tensor, sums_of_halves.tensor);
        norm(ctx, n, x_halves.tensor, x_halves.tensor);
      });
      download(ys, y);
      download(y_halves, y_half);
      download(sums, sum);
      download(sums_of_halves, sum_of_halves);
      download(x_halves, in_place);
      for (int64_t r = 0; r < c.rows; ++r) {
        std::vector<float> rounded(x.row(r), x.row(r) + c.width);
        for (float& v : rounded) v = as_half(v);
        const BoundedRow expected = normed(kind, w, bias, x.row(r));
        const BoundedRow of_halves = normed(kind, w, bias, rounded.data());
        for (int64_t i = 0; i < c.width; ++i) {
          const Bounded& e = expected[static_cast<size_t>(i)];
          const Bounded& h = of_halves[static_cast<size_t>(i)];
          const std::string where = str_cat("[", c.rows, ", ", c.width, "] at ", r, ", ", i);
          expect_within(y.row(r)[i], e, where);
          expect_within(y_half.row(r)[i], as_half(e), where);
          expect_within(sum.row(r)[i], plus(e, before.row(r)[i]), where);
          expect_within(sum_of_halves.row(r)[i], plus(h, before.row(r)[i]), where);
          expect_within(in_place.row(r)[i], as_half(h), where);
        }
        if (HasFailure()) return;
      }
    }
  }
}

// Q and K lie between others.
TEST_F(CudaTest, HeadsAreNormalisedEachOnItsOwn) {
  constexpr int64_t kHeads = 4;
  for (const int64_t width : {int64_t{20}, int64_t{64}, int64_t{128}, int64_t{256}}) {
    const Matrix x = random_matrix(3, (kHeads + 2) * width, 1, 2, 1);
    const Matrix w = random_matrix(1, width, 2);
    const Norm n = norm_of(*device_, NormKind::kRms, w);
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      Matrix y = x;
      const OnCard all = upload(x, dtype);
      run([&](ExecContext& ctx) { head_norm(ctx, n, all.tensor.columns(width, kHeads * width)); });
      download(all, y);
      for (int64_t r = 0; r < x.rows; ++r) {
        std::vector<float> row(x.row(r), x.row(r) + x.cols);
        if (dtype == DType::kF16) {
          for (float& v : row) v = as_half(v);
        }
        for (int64_t h = 0; h < kHeads + 2; ++h) {
          const bool in_heads = h >= 1 && h <= kHeads;
          const BoundedRow head = normed(NormKind::kRms, w, nullptr, row.data() + h * width);
          for (int64_t i = 0; i < width; ++i) {
            Bounded e = head[static_cast<size_t>(i)];
            if (dtype == DType::kF16) e = as_half(e);
            if (!in_heads) e = {row[static_cast<size_t>(h * width + i)], 0};
            expect_within(y.row(r)[h * width + i], e,
                          str_cat("heads of ", width, " at ", r, ", ", h, ", ", i));
          }
        }
        if (HasFailure()) return;
      }
    }
  }
}

// e^x is good to 2 ulp plus |x| roundings of its argument; sums run over n/1024 terms per thread.
TEST_F(CudaTest, SoftmaxAgreesWithReference) {
  for (const RowsCase& c : kSoftmaxCases) {
    Matrix x = random_matrix(c.rows, c.width, 1, 10, 3);
    if (c.width > 50) x.row(0)[40] = -INFINITY;
    Matrix y(c.rows, c.width, 1), in_place = x;
    const OnCard xs = upload(x, DType::kF32);
    const OnCard ys = upload(y, DType::kF32);
    run([&](ExecContext& ctx) {
      softmax(ctx, xs.tensor, ys.tensor);
      softmax(ctx, xs.tensor, xs.tensor);
    });
    download(ys, y);
    download(xs, in_place);
    std::vector<float> expected(static_cast<size_t>(c.width));
    for (int64_t r = 0; r < c.rows; ++r) {
      reference::softmax(c.width, x.row(r), expected.data());
      for (int64_t i = 0; i < c.width; ++i) {
        const float e = expected[static_cast<size_t>(i)];
        const float roundings = 100 + 32 + static_cast<float>(c.width) / 1024;
        if (x.row(r)[i] < -1e30f) {
          EXPECT_EQ(y.row(r)[i], 0);
        }
        expect_within(y.row(r)[i], {e, roundings * kEpsilon * e + 1.2e-38f},
                      str_cat("[", c.rows, ", ", c.width, "] at ", r, ", ", i));
      }
      EXPECT_TRUE(same_bits(in_place.row(r), y.row(r), c.width));
      if (HasFailure()) return;
    }
  }
}

TEST_F(CudaTest, TopKIsTheFrontOfTheSortedRow) {
  for (const RowsCase& c : kSoftmaxCases) {
    const Matrix x = rows_with_ties(c.rows, c.width);
    const OnCard xs = upload(x, DType::kF32);
    for (const int k : kTopK) {
      std::vector<Ranked> best(static_cast<size_t>(c.rows * k));
      run([&](ExecContext& ctx) { top_k(ctx, xs.tensor, k, best); });
      expect_front_of_sorted_rows(x, k, best);
      if (HasFailure()) return;
    }
  }
}

// Exact: rows of the table as the card has it, times the scale; one of a token that only the card
// knows.
TEST_F(CudaTest, EmbeddingsAreRowsOfEveryType) {
  const DealtBlocks tables({40, 9}, 16, 1);
  const TestBatch owner(tables, {{0, 3, 37}, {1, 0, 9}});  // token ids are positions
  auto* const ids = const_cast<int32_t*>(owner.batch().token_ids());
  const std::vector<int32_t> previous = {5, 31};
  const Buffer tokens = device_->allocate(previous.size() * sizeof(int32_t), "tokens").value();
  ASSERT_TRUE(device_->upload(tokens.data(), previous.data(), tokens.bytes()).ok());
  ids[11] = ~1;
  Batch batch = stage(owner);
  batch.previous = static_cast<const int32_t*>(tokens.data());
  ids[11] = previous[1];
  for (const DType dtype : kWeightTypes) {
    const Weights w = random_weights(dtype, 40, 512, 1);
    const std::vector<float> table = on_card(w);
    const Embedding e = make_embedding(*device_, w.view()).value();
    Matrix x(46, 512, 3), last(2, 512);
    const OnCard xs = upload(x, DType::kF32);
    const OnCard lasts = upload(last, DType::kF32);
    run([&](ExecContext& ctx) {
      embedding(ctx, e, batch, 3, xs.tensor);
      gather_logit_rows(ctx, batch, xs.tensor, lasts.tensor);
    });
    download(xs, x);
    download(lasts, last);
    for (int64_t t = 0; t < 46; ++t) {
      const float* row = table.data() + int64_t{ids[t]} * 512;
      for (int64_t i = 0; i < 512; ++i) {
        ASSERT_EQ(x.row(t)[i], row[i] * 3) << dtype_name(dtype) << " at " << t << ", " << i;
      }
    }
    EXPECT_TRUE(same_bits(last.row(0), x.row(36), 512));
    EXPECT_TRUE(same_bits(last.row(1), x.row(45), 512));
  }
}

TEST_F(CudaTest, ThereMayBeManyRowsAndTokens) {
  constexpr int64_t kWidth = 8;
  const Matrix x = random_matrix(kManyRows, kWidth, 1);
  const Matrix w = random_matrix(1, kWidth, 2);
  const Norm n = norm_of(*device_, NormKind::kRms, w);
  // Every token of a vocabulary as large.
  const Weights table = random_weights(DType::kF32, kManyRows, kWidth, 3);
  const std::vector<float> floats = on_card(table);
  const Embedding e = make_embedding(*device_, table.view()).value();
  const DealtBlocks tables({kManyRows}, 16, 1);
  const TestBatch owner(tables, {{0, 0, kManyRows}});
  const Batch batch = stage(owner);
  Matrix y(kManyRows, kWidth), heads = x, found = y;
  const OnCard xs = upload(x, DType::kF32);
  const OnCard ys = upload(y, DType::kF32);
  const OnCard founds = upload(found, DType::kF32);
  run([&](ExecContext& ctx) {
    norm(ctx, n, xs.tensor, ys.tensor);
    head_norm(ctx, n, xs.tensor);
    embedding(ctx, e, batch, 1, founds.tensor);
  });
  download(ys, y);
  download(xs, heads);
  download(founds, found);
  for (const int64_t r : kRowsOfMany) {
    const BoundedRow expected = normed(NormKind::kRms, w, nullptr, x.row(r));
    for (int64_t i = 0; i < kWidth; ++i) {
      expect_within(y.row(r)[i], expected[static_cast<size_t>(i)], str_cat("row ", r));
      expect_within(heads.row(r)[i], expected[static_cast<size_t>(i)], str_cat("head ", r));
    }
    EXPECT_TRUE(same_bits(found.row(r), floats.data() + r * kWidth, kWidth)) << "token " << r;
  }
}

}  // namespace
}  // namespace tinyvllm::ops
