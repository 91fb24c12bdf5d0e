#include <algorithm>
#include <cmath>

#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {

void softmax(int64_t n, const float* x, float* y) {
  const double largest = *std::max_element(x, x + n);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - largest);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(std::exp(x[i] - largest) / total);
}

}  // namespace tinyvllm::ops::reference
