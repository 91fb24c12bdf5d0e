// Rotary position embedding, and the write of K and V into the cache that always follows it.
#pragma once

#include <vector>

#include "base/result.h"
#include "core/batch.h"
#include "core/kv.h"
#include "device/exec_context.h"

namespace tinyvllm::ops {

// Which two elements of a head rotate together: (0,1),(2,3),… or (0,n/2),(1,n/2+1),…
enum class RopePairing { kAdjacent, kHalves };

// Everything a rotation needs, fixed at load: angle of pair i at position p is p · frequency[i],
// and `magnitude` scales the rotated vector (YaRN, longrope).
struct Rope {
  RopePairing pairing = RopePairing::kHalves;
  int head_dim = 0;
  int rotary_dim = 0;              // elements of a head that rotate; the rest pass through
  std::vector<float> frequencies;  // [rotary_dim / 2]
  float magnitude = 1;
};

// Plain frequencies base^(-2i/rotary_dim); a scaling variant adjusts the result.
Rope make_rope(RopePairing pairing, int head_dim, int rotary_dim, double base);

// Rotates q in place, rotates k, and writes k and v to the batch's slots of one layer's cache.
// q: [tokens, heads · head_dim], k: [tokens, kv_heads · k_dim], v: [tokens, kv_heads · v_dim]
void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v);

}  // namespace tinyvllm::ops
