// Ways to stretch rotary positions beyond the length that a model was first trained for. Each
// adjusts a Rope once, at load: nothing here depends on the text, so a token's angles never change.
#pragma once

#include <cstdint>
#include <span>

#include "ops/rope.h"

namespace tinyvllm::ops {

// All positions move closer together: every pair turns `factor` times slower.
void scale_rope_linear(Rope& rope, double factor);

// Pair i turns factors[i] times slower: longrope's two lists, and how GGUF files store llama3's.
void scale_rope_pairs(Rope& rope, std::span<const float> factors);  // [rotary_dim / 2]

// Pairs that turn more than `high` times within the original length stay, those that turn less than
// `low` times slow down by `factor`, the ones between go smoothly from one to the other.
struct Llama3Scaling {
  double factor = 8;
  double low = 1;
  double high = 4;
  int64_t original_length = 8192;
};
void scale_rope_llama3(Rope& rope, const Llama3Scaling& scaling);

// YaRN: the same idea with a straight ramp over the index of the pair, from the one that turns
// beta_fast times to the one that turns beta_slow times.
struct YarnScaling {
  double base = 10000;  // of the rope's frequencies
  double factor = 1;
  int64_t original_length = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  bool whole_pairs = true;  // the ramp's ends are rounded outwards to whole pairs
};
void scale_rope_yarn(Rope& rope, const YarnScaling& scaling);

// How much longer rotated vectors become: YaRN's 0.1 · mscale · ln(factor) + 1, and longrope's
// sqrt(1 + ln(factor) / ln(original_length)), where factor is model length / original length.
double yarn_magnitude(double factor, double mscale = 1);
double longrope_magnitude(double factor, int64_t original_length);

}  // namespace tinyvllm::ops
