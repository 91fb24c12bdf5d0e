#include "report/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tinyvllm {

double percentile(std::vector<double> samples, double percent) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = percent / 100 * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

double mean(const std::vector<double>& samples) {
  if (samples.empty()) return 0;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double deviation(const std::vector<double>& samples) {
  if (samples.empty()) return 0;
  const double middle = mean(samples);
  double sum = 0;
  for (const double s : samples) sum += (s - middle) * (s - middle);
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

double spread(const std::vector<double>& samples) {
  if (samples.empty()) return 0;
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  const double middle = median(samples);
  return middle == 0 ? 0 : (*high - *low) / 2 / std::abs(middle);
}

}  // namespace tinyvllm
