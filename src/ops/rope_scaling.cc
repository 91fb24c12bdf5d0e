#include "ops/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tinyvllm::ops {
namespace {

// frequency[i] ← frequency[i] · (keep + (1 − keep) / factor): keep = 1 leaves a pair as it was.
void slow_down(float& frequency, double factor, double keep) {
  frequency = static_cast<float>(frequency * (keep + (1 - keep) / factor));
}

}  // namespace

void scale_rope_linear(Rope& rope, double factor) {
  for (float& frequency : rope.frequencies) slow_down(frequency, factor, 0);
}

void scale_rope_pairs(Rope& rope, std::span<const float> factors) {
  CHECK(factors.size() == rope.frequencies.size())
      << factors.size() << " factors for " << rope.frequencies.size() << " pairs";
  for (size_t i = 0; i < factors.size(); ++i) rope.frequencies[i] /= factors[i];
}

void scale_rope_llama3(Rope& rope, const Llama3Scaling& s) {
  for (float& frequency : rope.frequencies) {
    const double turns =
        static_cast<double>(s.original_length) * frequency / (2 * std::numbers::pi);
    slow_down(frequency, s.factor, std::clamp((turns - s.low) / (s.high - s.low), 0.0, 1.0));
  }
}

void scale_rope_yarn(Rope& rope, const YarnScaling& s) {
  // The index, not whole, of the pair that turns so many times within the original length.
  const auto pair_that_turns = [&](double times) {
    const double length = static_cast<double>(s.original_length);
    return rope.rotary_dim * std::log(length / (times * 2 * std::numbers::pi)) /
           (2 * std::log(s.base));
  };
  double first = pair_that_turns(s.beta_fast);
  double last = pair_that_turns(s.beta_slow);
  if (s.whole_pairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, rope.rotary_dim - 1.0);
  const double width = first == last ? 0.001 : last - first;
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - first) / width, 0.0, 1.0);
    slow_down(rope.frequencies[i], s.factor, 1 - ramp);
  }
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double longrope_magnitude(double factor, int64_t original_length) {
  if (factor <= 1 || original_length <= 1) return 1;
  return std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_length)));
}

}  // namespace tinyvllm::ops
