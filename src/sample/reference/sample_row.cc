#include "sample/reference/sample_row.h"

#include <cmath>

#include "sample/random.h"

namespace tinyvllm::reference {

SampleOutput sample_row(const float* logits, int64_t vocabulary, const SampleRow& row) {
  int64_t best = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    if (std::isnan(logits[id])) return {};
    if (logits[id] > logits[best]) best = id;
  }
  const float top = logits[best];
  if (!std::isfinite(top)) return {};

  double total = 0;  // of exp(logit - top): the model's own distribution
  for (int64_t id = 0; id < vocabulary; ++id) total += std::exp(logits[id] - top);
  const auto output = [&](int64_t id) {
    return SampleOutput{static_cast<int32_t>(id),
                        static_cast<float>(logits[id] - top - std::log(total))};
  };
  if (row.params->temperature == 0) return output(best);

  const auto inverse = static_cast<float>(1 / row.params->temperature);
  double mass = 0;
  for (int64_t id = 0; id < vocabulary; ++id) mass += std::exp((logits[id] - top) * inverse);
  const double target = random_uniform({row.params->seed, 0, row.position}, 0) * mass;
  double passed = 0;
  for (int64_t id = 0; id < vocabulary; ++id) {
    passed += std::exp((logits[id] - top) * inverse);
    if (passed > target) return output(id);
  }
  return output(best);  // rounding left the walk a hair short of the total
}

}  // namespace tinyvllm::reference
