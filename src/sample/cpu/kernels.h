// What each instruction set provides to the sampler: passes over a block of logits. Compiled once
// per instruction set from isa/; plain pointers only. All of them give the same bits.
#pragma once

#include <stdint.h>

namespace tinyvllm::cpu_sampler {

// A row is looked at in blocks of this many logits. Their maxima say which blocks can be passed
// over: of a vocabulary of 151,936 in 594 blocks, the 40 likeliest tokens lie in 40 blocks.
constexpr int64_t kBlock = 256;

// Which tokens count: those whose (logit - top) · scale reaches the floor (see weight.h).
struct Octaves {
  float top;
  float scale;
  float floor;
};

// Tokens one below the other: a value each (a logit, or what a filter ranks by), id and weight.
struct Columns {
  float* values;
  int32_t* ids;
  uint32_t* weights;
};

// Values from least to most, both counted in; of the tokens that have just the least one, those
// with ids up to last_id.
struct Interval {
  float least;
  float most;
  int32_t last_id = INT32_MAX;
};

struct Kernels {
  // The maximum of each block of n logits; false when one of them is a NaN.
  bool (*block_maxima)(const float* logits, int64_t n, float* maxima);

  // The weights of n logits, and their sum. What is under the floor weighs nothing.
  uint64_t (*mass)(const float* logits, int64_t n, const Octaves& octaves);
  void (*weights)(const float* logits, int64_t n, const Octaves& octaves, uint32_t* weights);

  // Appends those that reach the floor, in their order, as logit and id (counted from first_id).
  // As below, 8 elements behind the last one may be read and written, too.
  int64_t (*collect)(const float* logits, int64_t n, int32_t first_id, const Octaves& octaves,
                     float* out_logits, int32_t* out_ids);

  // Sums of the weights whose value is above the interval, and inside it (whatever the id).
  void (*mass_around)(const float* values, const uint32_t* weights, int64_t n,
                      const Interval& interval, uint64_t* above, uint64_t* inside);

  // Copies the tokens whose key is in the interval, in their order, and says how many. `to` may be
  // `from`, and keys may be one of its columns.
  int64_t (*keep)(const float* keys, int64_t n, const Interval& interval, const Columns& from,
                  const Columns& to);
};

}  // namespace tinyvllm::cpu_sampler
