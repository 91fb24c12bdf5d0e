#include <cmath>

#include "ops/reference/ops.h"

namespace tinyvllm::ops::reference {

void rotate(const Rope& rope, int position, float* head) {
  const int pairs = rope.rotary_dim / 2;
  for (int i = 0; i < pairs; ++i) {
    const bool adjacent = rope.pairing == RopePairing::kAdjacent;
    float& a = head[adjacent ? 2 * i : i];
    float& b = head[adjacent ? 2 * i + 1 : i + pairs];
    // The product is rounded to float, as the frameworks that models are trained in do.
    const double angle = static_cast<float>(position) * rope.frequencies[static_cast<size_t>(i)];
    const double c = rope.magnitude * std::cos(angle);
    const double s = rope.magnitude * std::sin(angle);
    const double x = a;
    const double y = b;
    a = static_cast<float>(x * c - y * s);
    b = static_cast<float>(x * s + y * c);
  }
}

}  // namespace tinyvllm::ops::reference
