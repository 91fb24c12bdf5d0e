// Mixtures against the reference, and against themselves in other batches. A result is a sum of
// `used` expert outputs with weights up to 1; each output went through two products, so it is off
// by at most (hidden + ffn)/8 + 32 roundings of its size, which the weights here keep near 1.
#include "ops/moe.h"

#include "ops/reference/ops.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

struct MoeCase {
  int64_t tokens;
  int64_t experts;
  int used;
  int64_t hidden;
  int64_t ffn;
  bool normalize;
};
const std::vector<MoeCase> kCases = {
    {1, 1, 1, 8, 8, true},     {3, 4, 4, 31, 5, true},  {9, 5, 2, 64, 33, false},
    {70, 16, 3, 32, 48, true}, {0, 4, 2, 32, 32, true},
};

// The weights of one mixture, and the same as the op takes them.
struct Mixture {
  Mixture(OpRunner& runner, const MoeCase& c, DType dtype = DType::kF32)
      : router_weights(random_weights(DType::kF32, c.experts, c.hidden, 1)),
        router(
            make_linear(runner.device(), runner.pool(), {{{router_weights.view()}}, {}}).value()) {
    Matrix ones(1, c.hidden);
    std::fill(ones.values.begin(), ones.values.end(), 1.0f);
    norm = make_norm(runner.device(), NormKind::kRms, 1e-6f,
                     TensorView{ones.values.data(), DType::kF32, Shape{c.hidden}}, nullptr)
               .value();
    for (uint32_t e = 0; e < c.experts; ++e) {
      gate.push_back(random_weights(dtype, c.ffn, c.hidden, 100 + e));
      up.push_back(random_weights(dtype, c.ffn, c.hidden, 200 + e));
      down.push_back(random_weights(dtype, c.hidden, c.ffn, 300 + e));
      const TensorView both[] = {gate.back().view(), up.back().view()};
      const TensorView single[] = {down.back().view()};
      experts.gate_up.push_back(make_linear(runner.device(), runner.pool(), {both, {}}).value());
      experts.down.push_back(make_linear(runner.device(), runner.pool(), {single, {}}).value());
    }
  }

  Weights router_weights;
  Linear router;
  Norm norm;
  std::vector<Weights> gate, up, down;
  Experts experts;
};

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
  for (const MoeCase& c : kCases) {
    const Mixture m(runner, c);
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
      reference::norm(NormKind::kRms, 1e-6f, c.hidden,
                      static_cast<const float*>(m.norm.weight.data()), nullptr, x.row(t),
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
    const Mixture m(one, c, dtype);
    const MoeParams params{c.used, c.normalize, Gate::kSilu};
    const Matrix x = random_matrix(c.tokens, c.hidden, 3);
    const Matrix together = run(two, m, params, x);
    for (int64_t t = 0; t < c.tokens; ++t) {
      Matrix single(1, c.hidden);
      std::copy_n(x.row(t), c.hidden, single.row(0));
      const Matrix alone = run(one, m, params, single);
      EXPECT_EQ(std::memcmp(alone.row(0), together.row(t), sizeof(float) * 64), 0) << t;
    }
  }
}

// Weights that went wrong must not send more rows to an expert than there are tokens.
TEST_P(MoeTest, TokensThatAreNotNumbersStayInTheirRows) {
  const MoeCase c{6, 5, 4, 32, 8, true};
  OpRunner runner(GetParam(), 1);
  const Mixture m(runner, c);
  Matrix x = random_matrix(c.tokens, c.hidden, 3);
  const Matrix clean = run(runner, m, {c.used, c.normalize, Gate::kSilu}, x);
  x.row(2)[7] = NAN;
  x.row(4)[0] = INFINITY;
  const Matrix y = run(runner, m, {c.used, c.normalize, Gate::kSilu}, x);
  EXPECT_TRUE(std::isnan(y.row(2)[0]));
  for (const int64_t t : {0, 1, 3, 5}) {
    EXPECT_EQ(std::memcmp(y.row(t), clean.row(t), sizeof(float) * 32), 0) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, MoeTest, testing::ValuesIn(supported_isas()),
                         [](const auto& info) { return isa_name(info.param); });

}  // namespace
}  // namespace tinyvllm::ops
