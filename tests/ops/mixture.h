// Mixtures on any device: the weights of one, the same as the op takes them, and what must hold of
// its results wherever they were computed.
#pragma once

#include "ops/moe.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {

struct Mixture {
  Mixture(Device& device, ThreadPool& pool, const MoeCase& c, DType dtype = DType::kF32)
      : Mixture(device, pool, c, dtype, dtype) {}
  Mixture(Device& device, ThreadPool& pool, const MoeCase& c, DType dtype, DType down_dtype)
      : router_weights(random_weights(DType::kF32, c.experts, c.hidden, 1)),
        router(linear_of(device, pool, {&router_weights})),
        norm_weight(1, c.hidden) {
    std::fill(norm_weight.values.begin(), norm_weight.values.end(), 1.0f);
    norm = norm_of(device, NormKind::kRms, norm_weight);
    for (uint32_t e = 0; e < c.experts; ++e) {
      gate.push_back(random_weights(dtype, c.ffn, c.hidden, 100 + e));
      up.push_back(random_weights(dtype, c.ffn, c.hidden, 200 + e));
      down.push_back(random_weights(down_dtype, c.hidden, c.ffn, 300 + e));
      experts.gate_up.push_back(linear_of(device, pool, {&gate.back(), &up.back()}));
      experts.down.push_back(linear_of(device, pool, {&down.back()}));
    }
    const Status prepared = prepare_experts(device, experts);
    EXPECT_TRUE(prepared.ok()) << prepared.message();
  }

  Weights router_weights;
  Linear router;
  Matrix norm_weight;
  Norm norm;
  std::vector<Weights> gate, up, down;
  Experts experts;
};

using MixtureRun = std::function<Matrix(const Matrix& x)>;

inline void expect_same_in_any_batch(const MoeCase& c, const MixtureRun& run_together,
                                     const MixtureRun& run_alone) {
  const Matrix x = random_matrix(c.tokens, c.hidden, 3);
  const Matrix together = run_together(x);
  for (int64_t t = 0; t < c.tokens; ++t) {
    Matrix single(1, c.hidden);
    std::copy_n(x.row(t), c.hidden, single.row(0));
    const Matrix alone = run_alone(single);
    EXPECT_TRUE(same_bits(alone.row(0), together.row(t), c.hidden)) << t;
  }
}

// Weights that went wrong must not send more rows to an expert than there are tokens.
inline Matrix expect_bad_rows_stay_alone(const MoeCase& c, const MixtureRun& run) {
  Matrix x = random_matrix(c.tokens, c.hidden, 3);
  const Matrix clean = run(x);
  x.row(2)[7] = NAN;
  x.row(4)[0] = INFINITY;
  const Matrix y = run(x);
  for (int64_t t = 0; t < c.tokens; ++t) {
    if (t == 2 || t == 4) continue;
    EXPECT_TRUE(same_bits(y.row(t), clean.row(t), c.hidden)) << t;
  }
  return y;
}

}  // namespace tinyvllm::ops
