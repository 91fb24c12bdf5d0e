#include "report/compare.h"

#include <algorithm>
#include <cmath>

#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr double kLeastNoise = 0.02;
constexpr double kUnknownNoise = 0.10;
constexpr size_t kEnoughSamples = 3;

const BenchResult* find(const BenchRun& run, const std::string& name) {
  const auto found = std::find_if(run.results.begin(), run.results.end(),
                                  [&](const BenchResult& r) { return r.name == name; });
  return found == run.results.end() ? nullptr : &*found;
}

double noise_of(const BenchResult& a, const BenchResult& b) {
  const bool known = std::min(a.samples.size(), b.samples.size()) >= kEnoughSamples;
  return std::max(known ? kLeastNoise : kUnknownNoise, spread(a.samples) + spread(b.samples));
}

Comparison compare(const BenchResult& a, const BenchResult& b) {
  Comparison c{a.name, a.unit, a.value(), b.value()};
  c.noise = noise_of(a, b);
  const double first = a.more_is_better() ? c.before : c.after;
  const double second = a.more_is_better() ? c.after : c.before;
  if (first > 0) c.change = second / first - 1;
  // In logarithms twice as fast is as far as half as fast.
  const double distance = first > 0 && second > 0 ? std::abs(std::log(second / first)) : 0;
  if (distance > std::log1p(c.noise)) c.verdict = c.change > 0 ? Verdict::kBetter : Verdict::kWorse;
  return c;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kBetter:
      return "better";
    case Verdict::kWorse:
      return "WORSE";
    case Verdict::kOnlyBefore:
      return "gone";
    case Verdict::kOnlyAfter:
      return "new";
  }
  return "";
}

std::vector<Comparison> compare(const BenchRun& before, const BenchRun& after) {
  std::vector<Comparison> all, lonely;
  for (const BenchResult& a : before.results) {
    const BenchResult* b = find(after, a.name);
    if (b != nullptr && b->unit == a.unit) {
      all.push_back(compare(a, *b));
    } else {
      lonely.push_back({a.name, a.unit, a.value(), 0, 0, 0, Verdict::kOnlyBefore});
    }
  }
  for (const BenchResult& b : after.results) {
    const BenchResult* a = find(before, b.name);
    if (a != nullptr && a->unit == b.unit) continue;
    lonely.push_back({b.name, b.unit, 0, b.value(), 0, 0, Verdict::kOnlyAfter});
  }
  all.insert(all.end(), lonely.begin(), lonely.end());
  return all;
}

}  // namespace tinyvllm
