// Each filter, and each documented order of two, against probabilities that are worked out here in
// doubles, independently: thousands of draws, compared by chi-square. Where an order is promised,
// the test also sees to it that the other order would have been another distribution.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

#include "tests/sample/implementations.h"

namespace tinyvllm {
namespace {

using Exact = std::map<int32_t, double>;  // probabilities of the tokens that are left
using Filter = std::function<void(Exact&)>;

const std::vector<float> kLogits = {0.5f, -1.0f, 2.0f,  0.0f,  1.0f,  -0.5f, 1.5f,
                                    2.5f, -2.0f, 0.75f, 1.25f, -3.0f, 0.25f};

void normalise(Exact& left) {
  double total = 0;
  for (const auto& [id, p] : left) total += p;
  for (auto& [id, p] : left) p /= total;
}

Exact softmax(const std::vector<float>& logits, double temperature = 1) {
  Exact left;
  for (size_t i = 0; i < logits.size(); ++i) {
    left[static_cast<int32_t>(i)] = std::exp(logits[i] / temperature);
  }
  normalise(left);
  return left;
}

// Keeps the tokens that come first by `key` until `enough(count, mass)`.
template <class Key, class Enough>
void keep_first(Exact& left, Key key, Enough enough) {
  std::vector<int32_t> ids;
  for (const auto& [id, p] : left) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  Exact kept;
  double mass = 0;
  for (size_t i = 0; i < ids.size() && !enough(i, mass); ++i) {
    kept[ids[i]] = left[ids[i]];
    mass += left[ids[i]];
  }
  left = kept;
  normalise(left);
}

Filter temperature(double t) {
  return [t](Exact& left) {
    for (auto& [id, p] : left) p = std::pow(p, 1 / t);
    normalise(left);
  };
}
Filter min_p(double share) {
  return [share](Exact& left) {
    double most = 0;
    for (const auto& [id, p] : left) most = std::max(most, p);
    std::erase_if(left, [&](const auto& entry) { return entry.second < share * most; });
    normalise(left);
  };
}
Filter top_k(size_t k) {
  return [k](Exact& left) {
    keep_first(
        left, [&](int32_t id) { return -left[id]; },
        [k](size_t count, double) { return count >= k; });
  };
}
Filter top_p(double mass) {
  return [mass](Exact& left) {
    keep_first(
        left, [&](int32_t id) { return -left[id]; },
        [mass](size_t, double sum) { return sum >= mass; });
  };
}
Filter typical_p(double mass) {
  return [mass](Exact& left) {
    double entropy = 0;
    for (const auto& [id, p] : left) entropy -= p * std::log(p);
    keep_first(
        left, [&](int32_t id) { return std::fabs(-std::log(left[id]) - entropy); },
        [mass](size_t, double sum) { return sum >= mass; });
  };
}
Filter xtc(double probability, double threshold) {
  return [=](Exact& left) {
    Exact without = left;
    int32_t last = -1;  // the least likely of the likely ones
    for (const auto& [id, p] : left) {
      if (p >= threshold && (last < 0 || p < left[last])) last = id;
    }
    std::erase_if(without, [&](const auto& e) { return e.second >= threshold && e.first != last; });
    normalise(without);
    for (auto& [id, p] : left) p *= 1 - probability;
    for (const auto& [id, p] : without) left[id] += probability * p;
    std::erase_if(left, [](const auto& entry) { return entry.second == 0; });
  };
}

// The value that chi-square with so many degrees of freedom passes once in 10,000 (Wilson and
// Hilferty's approximation).
double chi_square_limit(double freedom) {
  const double a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + 3.719 * std::sqrt(a), 3);
}

void expect_distribution(const SamplingParams& params, const Exact& exact,
                         const std::vector<float>& logits = kLogits,
                         const std::vector<int32_t>& history = {}) {
  constexpr int kDraws = 20000;
  for (const Implementation& impl : implementations()) {
    std::map<int32_t, int> counts;
    for (uint32_t draw = 0; draw < kDraws; ++draw) {
      SampleRow row;
      row.params = &params;
      row.answer = draw;
      row.history = history;
      row.position = static_cast<uint32_t>(history.size());
      counts[impl.sample(logits, row).token] += 1;
    }
    double chi_square = 0;
    double cells = 0, rare_expected = 0, rare_counted = 0;
    const auto add_cell = [&](double expected, double counted) {
      chi_square += (counted - expected) * (counted - expected) / expected;
      cells += 1;
    };
    for (const auto& [id, p] : exact) {
      if (kDraws * p > 5) {
        add_cell(kDraws * p, counts[id]);
      } else {  // too few to compare one by one
        rare_expected += kDraws * p;
        rare_counted += counts[id];
      }
    }
    if (rare_expected > 0) add_cell(rare_expected, rare_counted);
    for (const auto& [id, count] : counts) {
      EXPECT_TRUE(exact.contains(id) || count == 0) << impl.name << " chose token " << id;
    }
    if (cells < 2) continue;
    EXPECT_LT(chi_square, chi_square_limit(cells - 1)) << impl.name;
  }
}

Exact apply(const std::vector<Filter>& filters) {
  Exact left = softmax(kLogits);
  for (const Filter& filter : filters) filter(left);
  return left;
}

// That `first` acts before `second`, and that it matters.
void expect_order(const SamplingParams& params, const Filter& first, const Filter& second) {
  const Exact exact = apply({first, second});
  const Exact other = apply({second, first});
  double difference = 0;
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const auto p = [id](const Exact& e) { return e.contains(id) ? e.at(id) : 0.0; };
    difference += std::fabs(p(exact) - p(other));
  }
  ASSERT_GT(difference, 0.05) << "these parameters do not tell the orders apart";
  expect_distribution(params, exact);
}

SamplingParams seeded() {
  SamplingParams params;
  params.seed = 20240229;
  return params;
}

TEST(Distribution, Temperature) {
  for (const double t : {0.5, 1.0, 2.0}) {
    SamplingParams params = seeded();
    params.temperature = t;
    expect_distribution(params, softmax(kLogits, t));
  }
}

TEST(Distribution, MinP) {
  SamplingParams params = seeded();
  params.min_p = 0.2;
  expect_distribution(params, apply({min_p(0.2)}));
}

TEST(Distribution, TopK) {
  SamplingParams params = seeded();
  params.top_k = 5;
  expect_distribution(params, apply({top_k(5)}));
}

TEST(Distribution, TopP) {
  for (const double mass : {0.05, 0.6, 0.95}) {
    SamplingParams params = seeded();
    params.top_p = mass;
    expect_distribution(params, apply({top_p(mass)}));
  }
}

TEST(Distribution, TypicalP) {
  for (const double mass : {0.2, 0.7}) {
    SamplingParams params = seeded();
    params.typical_p = mass;
    const Exact exact = apply({typical_p(mass)});
    ASSERT_FALSE(exact.contains(7) && mass < 0.5) << "the likeliest token is not typical";
    expect_distribution(params, exact);
  }
}

TEST(Distribution, Xtc) {
  SamplingParams params = seeded();
  params.xtc_probability = 0.4;
  params.xtc_threshold = 0.1;
  expect_distribution(params, apply({xtc(0.4, 0.1)}));
  params.xtc_threshold = 0.51;  // as in llama.cpp: never
  expect_distribution(params, apply({}));
}

TEST(Distribution, TemperatureComesBeforeMinP) {
  SamplingParams params = seeded();
  params.temperature = 2;
  params.min_p = 0.3;
  expect_order(params, temperature(2), min_p(0.3));
}

TEST(Distribution, MinPComesBeforeTopP) {
  SamplingParams params = seeded();
  params.min_p = 0.3;
  params.top_p = 0.7;
  expect_order(params, min_p(0.3), top_p(0.7));
}

TEST(Distribution, TopKComesBeforeTypicalP) {
  SamplingParams params = seeded();
  params.top_k = 6;
  params.typical_p = 0.5;
  expect_order(params, top_k(6), typical_p(0.5));
}

TEST(Distribution, TopKComesBeforeTopP) {
  SamplingParams params = seeded();
  params.top_k = 4;
  params.top_p = 0.65;
  expect_order(params, top_k(4), top_p(0.65));
}

TEST(Distribution, TypicalPComesBeforeTopP) {
  SamplingParams params = seeded();
  params.typical_p = 0.5;
  params.top_p = 0.8;
  expect_order(params, typical_p(0.5), top_p(0.8));
}

TEST(Distribution, TopPComesBeforeXtc) {
  SamplingParams params = seeded();
  params.top_p = 0.8;
  params.xtc_probability = 1;
  params.xtc_threshold = 0.15;
  expect_order(params, top_p(0.8), xtc(1, 0.15));
}

TEST(Distribution, AllFiltersInTheirOrder) {
  SamplingParams params = seeded();
  params.temperature = 1.5;
  params.min_p = 0.05;
  params.top_k = 10;
  params.typical_p = 0.9;
  params.top_p = 0.9;
  params.xtc_probability = 0.5;
  params.xtc_threshold = 0.15;
  expect_distribution(params, apply({temperature(1.5), min_p(0.05), top_k(10), typical_p(0.9),
                                     top_p(0.9), xtc(0.5, 0.15)}));
}

// Penalties act on logits, before temperature divides them.
TEST(Distribution, PenaltiesComeBeforeTemperature) {
  SamplingParams params = seeded();
  params.temperature = 2;
  params.presence_penalty = 1.5;
  std::vector<float> penalised = kLogits;
  penalised[7] -= 1.5f;
  penalised[2] -= 1.5f;
  expect_distribution(params, softmax(penalised, 2), kLogits, {7, 2, 7});
}

TEST(Distribution, AllowedTokensAndBias) {
  SamplingParams params = seeded();
  params.allowed_token_ids = {0, 3, 4, 7};
  params.logit_bias = {{3, 2}};
  Exact exact = {{0, std::exp(kLogits[0])},
                 {3, std::exp(kLogits[3] + 2)},
                 {4, std::exp(kLogits[4])},
                 {7, std::exp(kLogits[7])}};
  normalise(exact);
  expect_distribution(params, exact);
}

// A wide vocabulary with a long tail: the nucleus is many tokens, and its edge lies among them.
TEST(Distribution, TopPOfALargeVocabulary) {
  std::vector<float> logits(600);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -std::log1p(static_cast<float>((i * 1103) % logits.size()));
  }
  SamplingParams params = seeded();
  params.top_p = 0.6;
  Exact exact = softmax(logits);
  top_p(0.6)(exact);
  expect_distribution(params, exact, logits);
}

}  // namespace
}  // namespace tinyvllm
