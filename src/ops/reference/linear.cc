#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/reference/dequantize.h"
#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {

void linear(DType dtype, const void* w, int64_t out, int64_t in, const float* x, float* y) {
  std::vector<float> row(static_cast<size_t>(in));
  const auto* bytes = static_cast<const char*>(w);
  for (int64_t r = 0; r < out; ++r, bytes += row_bytes(dtype, in)) {
    dequantize(dtype, bytes, in, row.data());
    double sum = 0;
    for (int64_t i = 0; i < in; ++i) sum += static_cast<double>(row[static_cast<size_t>(i)]) * x[i];
    y[r] = static_cast<float>(sum);
  }
}

void round_activations(int64_t n, int block, int top, float* x) {
  const auto code = static_cast<float>(top);
  for (float* end = x + n; x < end; x += block) {
    float largest = 0;
    for (int i = 0; i < block; ++i) largest = std::max(largest, std::fabs(x[i]));
    if (largest == 0) continue;
    const float inverse = code / largest;
    for (int i = 0; i < block; ++i) x[i] = std::nearbyint(x[i] * inverse) * (largest / code);
  }
}

void round_all_but_one(int64_t n, int block, int top, float* x) {
  float* const most =
      std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float outlier = std::exchange(*most, 0.0f);
  round_activations(n, block, top, x);
  *most = outlier;
}

float gate(Gate kind, float x) {
  const double g = x;
  if (kind == Gate::kSilu) return static_cast<float>(g / (1 + std::exp(-g)));
  const double root = std::sqrt(2 / M_PI);
  return static_cast<float>(0.5 * g * (1 + std::tanh(root * (g + 0.044715 * g * g * g))));
}

}  // namespace tinyvllm::ops::reference
