#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {
namespace {

std::vector<float> product(const float* w, int64_t out, int64_t in, const float* x) {
  std::vector<float> y(static_cast<size_t>(out));
  linear(DType::kF32, w, out, in, x, y.data());
  return y;
}

}  // namespace

void moe(const MoeToken& t, Gate kind, const float* x, float* y) {
  const std::vector<float> logits = product(t.router, t.experts, t.hidden, x);
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  const auto weight = [&](int64_t expert) {
    return std::exp(static_cast<double>(logits[static_cast<size_t>(expert)]));
  };
  order.resize(static_cast<size_t>(t.normalize ? t.used : t.experts));
  double total = 0;
  for (const int64_t expert : order) total += weight(expert);

  std::vector<double> sum(static_cast<size_t>(t.hidden));
  for (int64_t j = 0; j < t.used; ++j) {
    const int64_t expert = order[static_cast<size_t>(j)];
    const int64_t at = expert * t.ffn * t.hidden;
    std::vector<float> inner = product(t.gate + at, t.ffn, t.hidden, x);
    const std::vector<float> up = product(t.up + at, t.ffn, t.hidden, x);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] = gate(kind, inner[i]) * up[i];
    const std::vector<float> result = product(t.down + at, t.hidden, t.ffn, inner.data());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight(expert) / total * result[i];
  }
  std::copy(sum.begin(), sum.end(), y);
}

}  // namespace tinyvllm::ops::reference
