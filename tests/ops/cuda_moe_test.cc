// The card's mixtures against the reference, at the cases that the CPU's are tested at and with
// every weight type, and against themselves in other batches.
#include <optional>

#include "tests/ops/cuda_harness.h"
#include "tests/ops/mixture.h"

namespace tinyvllm::ops {
namespace {

MoeCase whole_blocks(MoeCase c, DType dtype, DType down_dtype) {
  c.hidden = ops::whole_blocks(dtype, c.hidden);
  c.ffn = ops::whole_blocks(down_dtype, c.ffn);
  return c;
}

// What a mixture on the card should come to.
class Judge {
 public:
  Judge(const Mixture& m, const MoeCase& c, Gate gate)
      : c_(c),
        gate_(gate),
        norm_weight_(m.norm_weight),
        router_(on_card(m.router_weights)),
        gates_(all(m.gate)),
        ups_(all(m.up)),
        downs_(all(m.down)) {}

  // Nothing where two experts are too close for the roundings of halves.
  std::optional<BoundedRow> operator()(const float* x) const {
    const BoundedRow n = as_halves(normed(NormKind::kRms, norm_weight_, nullptr, x));
    BoundedRow logits;
    for (int64_t e = 0; e < c_.experts; ++e) logits.push_back(product(at(router_, e, 1), n));
    std::vector<int64_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto logit = [&](size_t rank) { return logits[static_cast<size_t>(order[rank])]; };
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return logits[static_cast<size_t>(a)].value > logits[static_cast<size_t>(b)].value;
    });
    float off = 0;
    for (const Bounded& l : logits) off = std::max(off, l.error + 64 * kEpsilon);
    const auto used = static_cast<size_t>(c_.used);
    if (used < order.size() && logit(used - 1).value - logit(used).value <= 2 * off) return {};

    // A share e^l / Σ e^l moves by a factor between e^-2off and e^2off.
    double total = 0;
    for (size_t i = 0; i < (c_.normalize ? used : order.size()); ++i) {
      total += std::exp(static_cast<double>(logit(i).value));
    }
    std::vector<float> values, result(static_cast<size_t>(c_.hidden));
    for (const Bounded& b : n) values.push_back(b.value);
    reference::moe({c_.experts, c_.used, c_.hidden, c_.ffn, c_.normalize, router_.data(),
                    gates_.data(), ups_.data(), downs_.data()},
                   gate_, values.data(), result.data());
    BoundedRow y;
    for (size_t i = 0; i < result.size(); ++i) y.push_back({result[i], 0});
    for (size_t rank = 0; rank < used; ++rank) {
      const auto share = static_cast<float>(std::exp(logit(rank).value) / total);
      const BoundedRow out = run_expert(order[rank], n);
      for (size_t i = 0; i < out.size(); ++i) {
        y[i].error +=
            share * (out[i].error + std::expm1(2 * off) * (std::fabs(out[i].value) + out[i].error));
      }
    }
    for (size_t i = 0; i < y.size(); ++i) y[i] = plus(y[i], x[i]);
    return y;
  }

 private:
  static std::vector<float> all(const std::vector<Weights>& experts) {
    std::vector<float> values;
    for (const Weights& w : experts) {
      const std::vector<float> own = on_card(w);
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }
  const float* at(const std::vector<float>& matrix, int64_t row, int64_t rows_each) const {
    return matrix.data() + row * rows_each * c_.hidden;
  }
  BoundedRow run_expert(int64_t expert, const BoundedRow& n) const {
    const float* gates = at(gates_, expert, c_.ffn);
    const float* ups = at(ups_, expert, c_.ffn);
    const float* downs = at(downs_, expert, c_.ffn);
    const auto times = [](const float* row, const BoundedRow& x) {
      return product(row, x, Through::kFloats);
    };
    BoundedRow hidden, y;
    for (int64_t i = 0; i < c_.ffn; ++i) {
      hidden.push_back(
          as_half(gated(gate_, times(gates + i * c_.hidden, n), times(ups + i * c_.hidden, n))));
    }
    for (int64_t i = 0; i < c_.hidden; ++i) y.push_back(times(downs + i * c_.ffn, hidden));
    return y;
  }

  const MoeCase c_;
  const Gate gate_;
  const Matrix norm_weight_;
  const std::vector<float> router_, gates_, ups_, downs_;
};

class CudaMoeTest : public CudaTest {
 protected:
  // As models do: what is added up is what was normalised.
  Matrix run_mixture(const Mixture& m, const MoeParams& params, const Matrix& x) {
    Matrix y = x;
    const OnCard there = upload(x, DType::kF32);
    run([&](ExecContext& ctx) {
      moe_add(ctx, m.norm, m.router, m.experts, params, there.tensor, there.tensor);
    });
    download(there, y);
    return y;
  }

  void expect_reference(const MoeCase& c, DType dtype, DType down_dtype, Gate gate,
                        const std::vector<int64_t>& tokens) {
    const Mixture m(*device_, pool_, c, dtype, down_dtype);
    const Judge judge(m, c, gate);
    const Matrix x = random_matrix(c.tokens, c.hidden, 3, 2);
    const Matrix y = run_mixture(m, {c.used, c.normalize, gate}, x);
    size_t close = 0;
    for (const int64_t t : tokens) {
      const std::optional<BoundedRow> expected = judge(x.row(t));
      close += expected ? 0 : 1;
      for (int64_t i = 0; expected && i < c.hidden; ++i) {
        expect_within(y.row(t)[i], (*expected)[static_cast<size_t>(i)],
                      str_cat(dtype_name(dtype), "/", dtype_name(down_dtype), " ", c.experts,
                              " experts at ", t, ", ", i));
      }
      if (HasFailure()) return;
    }
    EXPECT_LE(close, 1 + tokens.size() / 4) << dtype_name(dtype);
  }
  static std::vector<int64_t> all_tokens(const MoeCase& c) {
    std::vector<int64_t> tokens(static_cast<size_t>(c.tokens));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
};

TEST_F(CudaMoeTest, AgreesWithReference) {
  for (const DType dtype : kWeightTypes) {
    for (const MoeCase& plain : kMoeCases) {
      const MoeCase c = whole_blocks(plain, dtype, dtype);
      const Gate gate = c.normalize ? Gate::kSilu : Gate::kGeluTanh;
      expect_reference(c, dtype, dtype, gate, all_tokens(c));
      if (HasFailure()) return;
    }
  }
}

// Files of many types keep the downs in one with more bits.
TEST_F(CudaMoeTest, DownsMayBeOfAnotherType) {
  const MoeCase c{9, 5, 2, 256, 256, true};
  expect_reference(c, DType::kQ4_K, DType::kQ6_K, Gate::kSilu, all_tokens(c));
  expect_reference(c, DType::kQ5_0, DType::kQ8_0, Gate::kSilu, all_tokens(c));
  expect_reference(c, DType::kQ2_K, DType::kF16, Gate::kSilu, all_tokens(c));
}

// Eight experts each for as many tokens as a step takes, and some more.
TEST_F(CudaMoeTest, ThereMayBeManyTokens) {
  const MoeCase c{8200, 16, 8, 32, 8, true};
  expect_reference(c, DType::kF16, DType::kF16, Gate::kSilu,
                   {0, 1, 4095, 4096, 8190, 8191, 8192, 8198, 8199});
}

TEST_F(CudaMoeTest, TokensThatAreNotNumbersStayInTheirRows) {
  const MoeCase c{6, 5, 4, 32, 8, true};
  const Mixture m(*device_, pool_, c);
  expect_bad_rows_stay_alone(c, [&](const Matrix& x) {
    return run_mixture(m, {c.used, c.normalize, Gate::kSilu}, x);
  });
}

class CudaDeterministicMoeTest : public CudaMoeTest {
 protected:
  CudaDeterministicMoeTest() { deterministic_ = true; }
};

TEST_F(CudaDeterministicMoeTest, AgreesWithReference) {
  for (const MoeCase& c : kMoeCases) {
    expect_reference(c, DType::kF16, DType::kF16, Gate::kSilu, all_tokens(c));
  }
}

TEST_F(CudaDeterministicMoeTest, ATokenComesOutTheSameInAnyBatch) {
  for (const DType dtype : {DType::kF32, DType::kQ8_0, DType::kQ4_0, DType::kQ5_0}) {
    const MoeCase c{40, 8, 3, 64, 96, true};
    const Mixture m(*device_, pool_, c, dtype);
    const MixtureRun run = [&](const Matrix& x) {
      return run_mixture(m, {c.used, c.normalize, Gate::kSilu}, x);
    };
    expect_same_in_any_batch(c, run, run);
  }
}

}  // namespace
}  // namespace tinyvllm::ops
