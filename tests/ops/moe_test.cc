// Mixtures against the reference, and against themselves in other batches. A result is a sum of
// `used` expert outputs with weights up to 1; each output went through two products, so it is off
// by at most (hidden + ffn)/8 + 32 roundings of its size, which the weights here keep near 1.
#include "ops/reference/ops.h"
#include "tests/ops/mixture.h"

namespace tinyvllm::ops {
namespace {

std::vector<float> floats(const std::vector<Weights>& weights) {
  std::vector<float> values;
  for (const Weights& w : weights) {
    const auto* first = reinterpret_cast<const float*>(w.bytes.data());
    values.insert(values.end(), first, first + w.out * w.in);
  }
  return values;
}

Matrix run(OpRunner& runner, const Mixture& m, const MoeParams& params, Matrix x) {
  Matrix y = x;
  runner.run([&](ExecContext& ctx) {
    moe_add(ctx, m.norm, m.router, m.experts, params, x.tensor(), y.tensor());
  });
  return y;
}

class MoeTest : public testing::TestWithParam<Isa> {};

TEST_P(MoeTest, AgreesWithReference) {
  OpRunner runner(GetParam(), 2);
  for (const MoeCase& c : kMoeCases) {
    const Mixture m(runner.device(), runner.pool(), c);
    const std::vector<float> gate = floats(m.gate), up = floats(m.up), down = floats(m.down);
    const reference::MoeToken token{
        c.experts,   c.used,      c.hidden,
        c.ffn,       c.normalize, reinterpret_cast<const float*>(m.router_weights.bytes.data()),
        gate.data(), up.data(),   down.data()};
    const Matrix x = random_matrix(c.tokens, c.hidden, 3, 2);
    const Matrix y = run(runner, m, {c.used, c.normalize, Gate::kSilu}, x);
    const float tolerance = static_cast<float>((c.hidden + c.ffn) / 8 + 32) * kEpsilon * 4;
    std::vector<float> normed(static_cast<size_t>(c.hidden)), expected = normed;
    for (int64_t t = 0; t < c.tokens; ++t) {
      reference::norm(NormKind::kRms, kNormEps, c.hidden, m.norm_weight.row(0), nullptr, x.row(t),
                      normed.data());
      reference::moe(token, Gate::kSilu, normed.data(), expected.data());
      for (int64_t i = 0; i < c.hidden; ++i) {
        const float total = x.row(t)[i] + expected[static_cast<size_t>(i)];
        expect_close(y.row(t)[i], total, tolerance * (1 + std::fabs(total)),
                     str_cat(c.experts, " experts at ", t, ", ", i));
      }
    }
  }
}

TEST_P(MoeTest, ATokenComesOutTheSameInAnyBatch) {
  for (const DType dtype : {DType::kF32, DType::kQ4_0}) {
    const MoeCase c{40, 8, 3, 64, 96, true};
    OpRunner one(GetParam(), 1);
    OpRunner two(GetParam(), 2);
    const Mixture m(one.device(), one.pool(), c, dtype);
    const MoeParams params{c.used, c.normalize, Gate::kSilu};
    expect_same_in_any_batch(
        c, [&](const Matrix& x) { return run(two, m, params, x); },
        [&](const Matrix& x) { return run(one, m, params, x); });
  }
}

TEST_P(MoeTest, TokensThatAreNotNumbersStayInTheirRows) {
  const MoeCase c{6, 5, 4, 32, 8, true};
  OpRunner runner(GetParam(), 1);
  const Mixture m(runner.device(), runner.pool(), c);
  const Matrix y = expect_bad_rows_stay_alone(c, [&](const Matrix& x) {
    return run(runner, m, {c.used, c.normalize, Gate::kSilu}, x);
  });
  EXPECT_TRUE(std::isnan(y.row(2)[0]));
}

INSTANTIATE_TEST_SUITE_P(Isas, MoeTest, testing::ValuesIn(supported_isas()),
                         [](const auto& info) { return isa_name(info.param); });

}  // namespace
}  // namespace tinyvllm::ops
