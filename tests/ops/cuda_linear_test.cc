// The card's products against the reference, at the cases that the CPU's are tested at and some
// that take its other ways: with --deterministic its own tile, without it cuBLASLt or, for few
// rows, a kernel that does norm, bias and gate as well.
#include "ops/embedding.h"
#include "ops/linear.h"
#include "tests/ops/cases.h"
#include "tests/ops/cuda_harness.h"

namespace tinyvllm::ops {
namespace {

class CudaLinearTest : public CudaTest, public testing::WithParamInterface<bool> {
 protected:
  CudaLinearTest() { deterministic_ = GetParam(); }

  static std::vector<LinearCase> cases() {
    std::vector<LinearCase> all = kLinearCases;
    all.push_back({4, 96, 512});
    all.push_back({8, 64, 2048});
    for (const int64_t rows : {33, 64, 41}) all.push_back({rows, 200, 512});  // of one bucket
    return all;
  }
  Linear make(const std::vector<const Weights*>& weights,
              const std::vector<const Matrix*>& biases = {}) {
    return linear_of(*device_, pool_, weights, biases);
  }
  // Rows that cuBLASLt takes where it can, and that are apart.
  static Matrix rows_for(int64_t rows, int64_t cols) {
    return Matrix(rows, cols, cols % 8 == 0 ? 8 : 2);
  }
};

// What was stored as a half before its bias was added.
Bounded with_bias(const Bounded& b, float bias) { return as_half(plus(as_half(b), bias)); }

TEST_P(CudaLinearTest, AgreesWithReference) {
  for (const DType dtype : kWeightTypes) {
    for (const LinearCase& c : cases()) {
      const Weights w = random_weights(dtype, c.out, whole_blocks(dtype, c.in), 1);
      const std::vector<float> floats = on_card(w);
      const Matrix bias = random_matrix(1, c.out, 2);
      const Matrix x = random_matrix(c.tokens, w.in, 3, 1, 3);
      Matrix y = rows_for(c.tokens, c.out);
      Matrix y_float = y;
      Matrix sum = random_matrix(c.tokens, c.out, 4);
      const Matrix before = sum;
      // One shares its matrix with an embedding, which is gone before it is used.
      const TensorView view = w.view();
      const Linear plain =
          make_linear(*device_, pool_,
                      {.weights = {&view, 1},
                       .biases = {},
                       .on_device = make_embedding(*device_, view).value().on_device})
              .value();
      const Linear biased = make({&w}, {&bias});
      const OnCard xs = upload(x, DType::kF16);
      const OnCard x_floats = upload(x, DType::kF32);
      const OnCard ys = upload(y, DType::kF16);
      const OnCard y_floats = upload(y_float, DType::kF32);
      const OnCard sums = upload(sum, DType::kF32);
      run([&](ExecContext& ctx) {
        linear(ctx, plain, xs.tensor, ys.tensor);
        linear(ctx, plain, x_floats.tensor, y_floats.tensor);
        linear_add(ctx, biased, xs.tensor, sums.tensor);
      });
      download(ys, y);
      download(y_floats, y_float);
      download(sums, sum);
      for (int64_t t = 0; t < c.tokens; ++t) {
        const BoundedRow row = halves(x.row(t), w.in);
        for (int64_t r = 0; r < c.out; ++r) {
          const Bounded e = product(floats.data() + r * w.in, row);
          const std::string where = str_cat(dtype_name(dtype), " [", c.tokens, ", ", c.out, ", ",
                                            w.in, "] at ", t, ", ", r);
          expect_within(y.row(t)[r], as_half(e), where);
          expect_within(y_float.row(t)[r], e, where);
          expect_within(sum.row(t)[r], plus(plus(e, bias.row(0)[r]), before.row(t)[r]), where);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(CudaLinearTest, NormedProductsAgreeWithReference) {
  for (const DType dtype : kWeightTypes) {
    for (const LinearCase& c : cases()) {
      const Weights w = random_weights(dtype, c.out, whole_blocks(dtype, c.in), 1);
      const std::vector<float> floats = on_card(w);
      const Matrix bias = random_matrix(1, c.out, 2);
      const Matrix norm_weight = random_matrix(1, w.in, 5);
      const Matrix norm_bias = random_matrix(1, w.in, 6);
      const Norm rms = norm_of(*device_, NormKind::kRms, norm_weight);
      const Norm layer = norm_of(*device_, NormKind::kLayer, norm_weight, &norm_bias);
      const Linear plain = make({&w});
      const Linear biased = make({&w}, {&bias});
      const Matrix x = random_matrix(c.tokens, w.in, 3, 2);
      Matrix y = rows_for(c.tokens, c.out);
      Matrix logits = y;
      const OnCard xs = upload(x, DType::kF32);
      const OnCard ys = upload(y, DType::kF16);
      const OnCard logits_there = upload(logits, DType::kF32);
      run([&](ExecContext& ctx) {
        norm_linear(ctx, rms, biased, xs.tensor, ys.tensor);
        norm_linear(ctx, layer, plain, xs.tensor, logits_there.tensor);
      });
      download(ys, y);
      download(logits_there, logits);
      for (int64_t t = 0; t < c.tokens; ++t) {
        const BoundedRow by_rms = as_halves(normed(NormKind::kRms, norm_weight, nullptr, x.row(t)));
        const BoundedRow by_layer =
            as_halves(normed(NormKind::kLayer, norm_weight, &norm_bias, x.row(t)));
        for (int64_t r = 0; r < c.out; ++r) {
          const float* row = floats.data() + r * w.in;
          const std::string where = str_cat(dtype_name(dtype), " [", c.tokens, ", ", c.out, ", ",
                                            w.in, "] at ", t, ", ", r);
          expect_within(y.row(t)[r], with_bias(product(row, by_rms), bias.row(0)[r]), where);
          expect_within(logits.row(t)[r], product(row, by_layer), where);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Gate and up as one tensor and as two, each with rows that go eight at a time and that do not.
TEST_P(CudaLinearTest, GatedIsTheGateOfBothHalves) {
  for (const DType dtype : kWeightTypes) {
    for (const int64_t half : {int64_t{16}, int64_t{13}}) {
      const int64_t in = whole_blocks(dtype, 96);
      const Weights both = random_weights(dtype, 2 * half, in, 1);
      const auto [g, u] = halves_of(both);
      const std::vector<float> floats = on_card(both);
      const Matrix bias = random_matrix(1, 2 * half, 2);
      const Matrix norm_weight = random_matrix(1, in, 5);
      const Norm n = norm_of(*device_, NormKind::kRms, norm_weight);
      const Linear one = make({&both});
      const Linear two = make({&g, &u});
      const Linear biased = make({&both}, {&bias});
      for (const int64_t tokens : {1, 5, 70}) {
        for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
          const Matrix x = random_matrix(tokens, in, 3, 2);
          Matrix split(tokens, half), whole(tokens, half), whole_biased(tokens, half);
          const OnCard xs = upload(x, DType::kF32);
          const OnCard x_halves = upload(x, DType::kF16);
          const OnCard splits = upload(split, DType::kF16);
          const OnCard wholes = upload(whole, DType::kF16);
          const OnCard wholes_biased = upload(whole_biased, DType::kF16);
          run([&](ExecContext& ctx) {
            norm_linear_gated(ctx, n, two, gate, xs.tensor, splits.tensor);
            linear_gated(ctx, one, gate, x_halves.tensor, wholes.tensor);
            linear_gated(ctx, biased, gate, x_halves.tensor, wholes_biased.tensor);
          });
          download(splits, split);
          download(wholes, whole);
          download(wholes_biased, whole_biased);
          for (int64_t t = 0; t < tokens; ++t) {
            const BoundedRow row = halves(x.row(t), in);
            const BoundedRow by_norm =
                as_halves(normed(NormKind::kRms, norm_weight, nullptr, x.row(t)));
            for (int64_t i = 0; i < half; ++i) {
              const float* g_row = floats.data() + i * in;
              const float* u_row = floats.data() + (half + i) * in;
              const float* b = bias.row(0) + i;
              const Bounded gx = as_half(product(g_row, row)), ux = as_half(product(u_row, row));
              const Bounded gn = as_half(product(g_row, by_norm));
              const Bounded un = as_half(product(u_row, by_norm));
              const std::string where =
                  str_cat(dtype_name(dtype), " half ", half, " of ", tokens, " at ", t, ", ", i);
              expect_within(split.row(t)[i], as_half(gated(gate, gn, un)), where);
              expect_within(whole.row(t)[i], as_half(gated(gate, gx, ux)), where);
              expect_within(whole_biased.row(t)[i],
                            as_half(gated(gate, plus(gx, b[0]), plus(ux, b[half]))), where);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Files mix types; some of those become one matrix on the card, others do not.
TEST_P(CudaLinearTest, PartsOfDifferentTypesLieSideBySide) {
  constexpr int64_t kIn = 256;
  const std::vector<Weights> parts = {
      random_weights(DType::kQ4_0, 7, kIn, 1),  random_weights(DType::kQ4_K, 17, kIn, 2),
      random_weights(DType::kQ6_K, 13, kIn, 3), random_weights(DType::kF16, 9, kIn, 4),
      random_weights(DType::kBF16, 4, kIn, 5),
  };
  std::vector<const Weights*> weights;
  std::vector<float> floats;
  std::vector<Matrix> biases;
  std::vector<float> bias;
  for (const Weights& w : parts) {
    const std::vector<float> own = on_card(w);
    weights.push_back(&w);
    floats.insert(floats.end(), own.begin(), own.end());
    biases.push_back(random_matrix(1, w.out, 6));
    bias.insert(bias.end(), biases.back().values.begin(), biases.back().values.end());
  }
  std::vector<const Matrix*> bias_parts;
  for (const Matrix& b : biases) bias_parts.push_back(&b);
  const auto out = static_cast<int64_t>(bias.size());
  const Linear plain = make(weights);
  const Linear biased = make(weights, bias_parts);
  for (const int64_t tokens : {1, 5, 70}) {
    const Matrix x = random_matrix(tokens, kIn, 7);
    Matrix y = Matrix(tokens, out, 6);  // 56 columns apart
    Matrix sum = random_matrix(tokens, out, 8);
    Matrix gates(tokens, out / 2);
    const Matrix before = sum;
    const OnCard xs = upload(x, DType::kF16);
    const OnCard ys = upload(y, DType::kF16);
    const OnCard sums = upload(sum, DType::kF32);
    const OnCard gates_there = upload(gates, DType::kF16);
    run([&](ExecContext& ctx) {
      linear(ctx, biased, xs.tensor, ys.tensor);
      linear_add(ctx, plain, xs.tensor, sums.tensor);
      linear_gated(ctx, plain, Gate::kSilu, xs.tensor, gates_there.tensor);
    });
    download(ys, y);
    download(sums, sum);
    download(gates_there, gates);
    for (int64_t t = 0; t < tokens; ++t) {
      const BoundedRow row = halves(x.row(t), kIn);
      BoundedRow e;
      for (int64_t r = 0; r < out; ++r) e.push_back(product(floats.data() + r * kIn, row));
      for (int64_t r = 0; r < out; ++r) {
        const auto at = static_cast<size_t>(r);
        const std::string where = str_cat(tokens, " rows at ", t, ", ", r);
        expect_within(y.row(t)[r], with_bias(e[at], bias[at]), where);
        expect_within(sum.row(t)[r], plus(e[at], before.row(t)[r]), where);
        if (r >= out / 2) continue;
        const Bounded up = e[at + static_cast<size_t>(out / 2)];
        expect_within(gates.row(t)[r], as_half(gated(Gate::kSilu, as_half(e[at]), as_half(up))),
                      where);
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CudaLinearTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "deterministic" : "plain"; });

}  // namespace
}  // namespace tinyvllm::ops
