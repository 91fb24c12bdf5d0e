#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {

void attention(const AttentionRow& row, float* y) {
  std::vector<double> weights(static_cast<size_t>(row.length));
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t t = 0; t < row.length; ++t) {
    double score = 0;
    for (int d = 0; d < row.k_dim; ++d) {
      score += static_cast<double>(row.q[d]) * row.k[t * row.k_dim + d];
    }
    score *= row.scale;
    if (row.soft_cap > 0) score = row.soft_cap * std::tanh(score / row.soft_cap);
    weights[static_cast<size_t>(t)] = score;
    largest = std::max(largest, score);
  }
  double total = 0;
  for (double& w : weights) total += w = std::exp(w - largest);
  for (int d = 0; d < row.v_dim; ++d) {
    double sum = 0;
    for (int64_t t = 0; t < row.length; ++t) {
      sum += weights[static_cast<size_t>(t)] * row.v[t * row.v_dim + d];
    }
    y[d] = static_cast<float>(sum / total);
  }
}

}  // namespace tinyvllm::ops::reference
