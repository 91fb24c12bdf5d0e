// Random rows of many shapes, with random parameters in random combinations.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sample/sampler.h"

namespace tinyvllm {

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  bool often() { return below(2) == 0; }
  bool seldom() { return below(4) == 0; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_()) * 0x1p-32;
  }

  std::vector<float> logits(size_t size) {
    std::vector<float> row(size);
    const int shape = below(10);
    const double spread = between(0.1, 12);
    for (float& logit : row) {
      switch (shape) {
        case 0:  // a few clear favourites
          logit = static_cast<float>(below(50) == 0 ? between(5, 20) : between(-5, 1));
          break;
        case 1:  // full of ties
          logit = static_cast<float>(below(6));
          break;
        case 2:
          logit = 0.5f;
          break;
        case 3:  // mostly masked
          logit = seldom() ? static_cast<float>(between(-3, 3)) : -kInfinity;
          break;
        case 4:  // far apart: many below the floor
          logit = static_cast<float>(between(-1, 1) * 1e3);
          break;
        case 5:  // as near as floats can be, and zeros of both signs
          logit = static_cast<float>(below(5) - 2) * std::numeric_limits<float>::denorm_min();
          break;
        case 6:  // rounded, as from a half-precision head
          logit = std::round(static_cast<float>(between(-1, 1) * spread) * 16) / 16;
          break;
        case 7:  // one favourite, the others alike: the nucleus ends among them
          logit = -1;
          break;
        case 8:  // a bell with a long tail of favourites, as models have it
          logit = static_cast<float>(2 * (between(-1, 1) + between(-1, 1) + between(-1, 1)) -
                                     2 * std::log(between(1e-6, 1)));
          break;
        default:
          logit = static_cast<float>(between(-1, 1) * spread);
      }
    }
    float& favourite = row[static_cast<size_t>(below(static_cast<int>(size)))];
    if (shape == 7) {
      favourite = static_cast<float>(between(0, 14));
    } else if (below(8) == 0) {
      favourite = 1e30f;
    }
    if (below(40) == 0) row[static_cast<size_t>(below(static_cast<int>(size)))] = NAN;
    return row;
  }

  SamplingParams params(int vocabulary) {
    SamplingParams p;
    p.seed = random_();
    if (seldom()) p.temperature = often() ? 0 : between(0.01, 3);
    if (seldom()) p.temperature = often() ? 1e-5 : between(3, 100);
    if (seldom()) p.top_k = 1 + below(often() ? 50 : 2 * vocabulary);
    if (often()) p.top_p = often() ? between(0.001, 1) : between(0.9, 1);
    if (seldom()) p.min_p = often() ? between(0, 0.2) : between(0, 1);
    if (below(40) == 0) p.min_p = 1;
    if (seldom()) p.typical_p = between(0.01, 1);
    if (seldom()) {
      p.xtc_probability = often() ? 1 : between(0, 1);
      p.xtc_threshold = between(0, 0.6);
    }
    if (seldom()) p.repetition_penalty = between(0.5, 2);
    if (seldom()) p.frequency_penalty = between(-2, 2);
    if (seldom()) p.presence_penalty = between(-2, 2);
    if (seldom()) {
      p.dry_multiplier = between(0, 2);
      p.dry_base = between(0.9, 3);
      p.dry_allowed_length = below(4);
      p.dry_penalty_last_n = often() ? -1 : below(100);
      if (often()) p.dry_sequence_breaker_ids = {0, 3};
    }
    if (seldom()) p.logprobs = below(often() ? 3 : 21);
    if (seldom()) p.min_tokens = below(30);
    if (seldom()) p.stop_token_ids = {below(vocabulary)};
    for (int i = seldom() ? below(9) : 0; i > 0; --i) {
      p.logit_bias.push_back({below(vocabulary), static_cast<float>(between(-9, 9))});
    }
    for (int i = seldom() ? below(9) : 0; i > 0; --i) {
      p.bad_words_token_ids.push_back({});
      for (int n = 1 + below(3); n > 0; --n) p.bad_words_token_ids.back().push_back(below(4));
    }
    if (below(8) == 0) {
      p.allowed_token_ids.emplace();
      for (int i = 1 + below(99); i > 0; --i) p.allowed_token_ids->push_back(below(vocabulary));
    }
    return p;
  }

  // Only what a card does too.
  SamplingParams params_for_cards(int vocabulary) {
    SamplingParams p = params(vocabulary);
    p.typical_p = 1;
    p.xtc_probability = 0;
    p.dry_multiplier = 0;
    return p;
  }

  // Repetitive, and with the odd token from outside.
  std::vector<int32_t> history(int vocabulary) {
    std::vector<int32_t> tokens(static_cast<size_t>(below(often() ? 20 : 300)));
    for (int32_t& token : tokens) token = below(often() ? std::min(vocabulary, 4) : vocabulary);
    if (!tokens.empty() && seldom()) tokens[tokens.size() / 2] = often() ? -1 : vocabulary;
    return tokens;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random_;
};

}  // namespace tinyvllm
