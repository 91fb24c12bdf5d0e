// The arithmetic besides weight.h that decides a choice, once for all implementations: what is
// rounded, and where. How tokens are found, sorted and summed is each implementation's own affair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/sampling_params.h"
#include "sample/share.h"
#include "sample/weight.h"

namespace tinyvllm {

constexpr double kMinTemperature = 0.01;

// Octaves per unit of logit.
inline float octave_scale(double temperature) {
  return static_cast<float>(kLog2E / std::max(temperature, kMinTemperature));
}

// min_p, in octaves under the likeliest token.
inline float floor_octaves(double min_p) {
  return min_p > 0 ? std::max(kFloorOctaves, static_cast<float>(std::log2(min_p))) : kFloorOctaves;
}

// typical_p ranks tokens by how far their surprise (in octaves) is from the mean, which is summed
// in steps of 2^-14 octaves: weight times surprise stays below 2^44, a row's sum below 2^64.
constexpr float kSurpriseSteps = 16384;
inline uint64_t surprise_steps(float octaves) {
  return static_cast<uint64_t>(-octaves * kSurpriseSteps + 0.5f);
}
inline float mean_surprise(uint64_t weighted_steps, uint64_t total) {
  return static_cast<float>(static_cast<double>(weighted_steps) / static_cast<double>(total) /
                            kSurpriseSteps);
}
inline float atypicality(float octaves, float mean) { return std::fabs(-octaves - mean); }

inline float logprob_of(float logit, float top, uint64_t total) {
  return static_cast<float>(static_cast<double>(logit) - top -
                            std::log(static_cast<double>(total) * 0x1p-30));
}

// A repeat this much longer than allowed costs no more than one of this length: at 1.75, 10^62.
constexpr int kMaxDryExponent = 256;
inline int longest_dry_repeat(const SamplingParams& params) {
  return params.dry_allowed_length + kMaxDryExponent;
}
inline float dry_penalty(const SamplingParams& params, int repeat) {
  const double penalty =
      params.dry_multiplier * std::pow(params.dry_base, repeat - params.dry_allowed_length);
  return static_cast<float>(std::min<double>(penalty, std::numeric_limits<float>::max()));
}
inline bool uses_dry(const SamplingParams& params) {
  return params.dry_multiplier > 0 && params.dry_base >= 1 && params.dry_penalty_last_n != 0;
}

}  // namespace tinyvllm
