// Linears of every weight type against the reference, at odd shapes, with every epilogue. Weights
// as floats: a sum of `in` products in float is off by at most in/8 + 8 roundings of Σ|w·x|.
// Quantized: the reference multiplies the same rounded activations, so only the float scales round,
// at most 2 · in/32 + 16 of them, each relative to the largest |w| · Σ|x|.
#include "ops/linear.h"

#include "ops/reference/dequantize.h"
#include "ops/reference/ops.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

// Columns of activations that share a scale; 0 where they stay floats.
int activation_block(DType dtype) {
  return is_quantized(dtype) ? dtype_info(dtype).block_elements : 0;
}

// Q8_0 is multiplied in 16 bits; the others in 8, the row's largest as it is.
void round_as_kernels_do(DType dtype, int64_t n, float* x) {
  if (dtype == DType::kQ8_0) return reference::round_activations(n, 32, 4095, x);
  reference::round_all_but_one(n, activation_block(dtype), 127, x);
}

struct Expected {
  std::vector<float> y;          // [out]
  std::vector<float> tolerance;  // [out]
};

Expected judge(const Weights& w, const float* x) {
  Expected e;
  e.y.resize(static_cast<size_t>(w.out));
  std::vector<float> rounded(x, x + w.in);
  const int block = activation_block(w.dtype);
  if (block > 0) round_as_kernels_do(w.dtype, w.in, rounded.data());
  reference::linear(w.dtype, w.bytes.data(), w.out, w.in, rounded.data(), e.y.data());
  std::vector<float> row(static_cast<size_t>(w.in));
  for (int64_t r = 0; r < w.out; ++r) {
    reference::dequantize(w.dtype,
                          w.bytes.data() + static_cast<size_t>(r) * row_bytes(w.dtype, w.in), w.in,
                          row.data());
    float products = 0;
    float largest = 0;
    float total = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      products += std::fabs(row[i] * rounded[i]);
      largest = std::max(largest, std::fabs(row[i]));
      total += std::fabs(rounded[i]);
    }
    const auto in = static_cast<float>(w.in);
    e.tolerance.push_back(block == 0 ? (in / 8 + 8) * kEpsilon * products
                                     : (in / 16 + 16) * kEpsilon * largest * total);
  }
  return e;
}

class LinearTest : public testing::TestWithParam<std::tuple<Isa, DType>> {
 protected:
  OpRunner runner_{std::get<0>(GetParam()), 2};
  DType dtype_ = std::get<1>(GetParam());

  Linear make(const std::vector<const Weights*>& weights,
              const std::vector<const Matrix*>& biases = {}) {
    return linear_of(runner_.device(), runner_.pool(), weights, biases);
  }
};

TEST_P(LinearTest, AgreesWithReference) {
  for (const LinearCase& c : kLinearCases) {
    const Weights w = random_weights(dtype_, c.out, whole_blocks(dtype_, c.in), 1);
    const Matrix bias = random_matrix(1, c.out, 2);
    Matrix x = random_matrix(c.tokens, w.in, 3, 1, 3);
    Matrix y(c.tokens, c.out, 2);
    Matrix sum = random_matrix(c.tokens, c.out, 4);
    const Matrix before = sum;
    const Linear plain = make({&w});
    const Linear biased = make({&w}, {&bias});
    runner_.run([&](ExecContext& ctx) { linear(ctx, plain, x.tensor(), y.tensor()); });
    runner_.run([&](ExecContext& ctx) { linear_add(ctx, biased, x.tensor(), sum.tensor()); });
    for (int64_t t = 0; t < c.tokens; ++t) {
      const Expected e = judge(w, x.row(t));
      for (int64_t r = 0; r < c.out; ++r) {
        const auto i = static_cast<size_t>(r);
        const std::string where =
            str_cat("[", c.tokens, ", ", c.out, ", ", w.in, "] at ", t, ", ", r);
        expect_close(y.row(t)[r], e.y[i], e.tolerance[i], where);
        const float total = before.row(t)[r] + bias.row(0)[r] + e.y[i];
        expect_close(sum.row(t)[r], total, e.tolerance[i] + 16 * kEpsilon, where);
      }
    }
  }
}

TEST_P(LinearTest, GatedIsTheGateOfBothHalves) {
  // Halves as two tensors, as one, and as one that no group of 8 rows divides.
  for (const int64_t half : {int64_t{16}, int64_t{13}}) {
    const int64_t in = whole_blocks(dtype_, 96);
    const Weights both = random_weights(dtype_, 2 * half, in, 1);
    const auto [g, u] = halves_of(both);
    const Matrix norm_weight = random_matrix(1, in, 5);
    const Norm n = norm_of(runner_.device(), NormKind::kRms, norm_weight);
    Matrix x = random_matrix(70, in, 3, 2);
    Matrix normed(70, in);
    Matrix plain(70, 2 * half);
    Matrix split(70, half);
    Matrix whole(70, half);
    const Linear one = make({&both});
    const Linear two = make({&g, &u});
    for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
      runner_.run([&](ExecContext& ctx) {
        norm(ctx, n, x.tensor(), normed.tensor());
        linear(ctx, one, normed.tensor(), plain.tensor());
        norm_linear_gated(ctx, n, two, gate, x.tensor(), split.tensor());
        linear_gated(ctx, one, gate, normed.tensor(), whole.tensor());
      });
      EXPECT_EQ(split.values, whole.values);
      for (int64_t t = 0; t < 70; ++t) {
        for (int64_t i = 0; i < half; ++i) {
          const float expected = reference::gate(gate, plain.row(t)[i]) * plain.row(t)[half + i];
          expect_close(split.row(t)[i], expected, 16 * kEpsilon * (1 + std::fabs(expected)),
                       str_cat("half ", half, " at ", t, ", ", i));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTest,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::ValuesIn(kWeightTypes)),
                         [](const auto& info) {
                           return str_cat(isa_name(std::get<0>(info.param)), "_",
                                          dtype_name(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tinyvllm::ops
