#include <cmath>

#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {

void norm(NormKind kind, float eps, int64_t width, const float* weight, const float* bias,
          const float* x, float* y) {
  double mean = 0;
  if (kind == NormKind::kLayer) {
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= static_cast<double>(width);
  }
  double variance = 0;
  for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
  variance /= static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) {
    const double normed = (x[i] - mean) / std::sqrt(variance + eps) * weight[i];
    y[i] = static_cast<float>(normed + (bias == nullptr ? 0 : bias[i]));
  }
}

}  // namespace tinyvllm::ops::reference
