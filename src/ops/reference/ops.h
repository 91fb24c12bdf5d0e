// The truth that every backend is measured against: each op as its formula, scalar, contiguous,
// sums in double, never tuned. K and V are plain arrays here, so paging is judged too.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"

namespace tinyvllm::ops::reference {

// x, y: [width]; bias may be null.
void norm(NormKind kind, float eps, int64_t width, const float* weight, const float* bias,
          const float* x, float* y);

// y = W x.  w: [out, in] of any readable type, x: [in]
void linear(DType dtype, const void* w, int64_t out, int64_t in, const float* x, float* y);

// x as the kernels of quantized weights see it: integers up to `top` times one scale per `block`.
void round_activations(int64_t n, int block, int top, float* x);
// The same, the largest number as it is and out of its block.
void round_all_but_one(int64_t n, int block, int top, float* x);

float gate(Gate kind, float x);

// head: [head_dim], rotated in place.
void rotate(const Rope& rope, int position, float* head);

struct AttentionRow {
  const float* q;  // [k_dim]
  const float* k;  // [length, k_dim]: what the query sees, nothing else
  const float* v;  // [length, v_dim]
  int64_t length;
  int k_dim;
  int v_dim;
  float scale;
  float soft_cap;
};
void attention(const AttentionRow& row, float* y);  // y: [v_dim]

void softmax(int64_t n, const float* x, float* y);

// One token of a mixture, weights as plain floats. x: [hidden], the norm applied; y: [hidden]
struct MoeToken {
  int64_t experts;
  int64_t used;
  int64_t hidden;
  int64_t ffn;
  bool normalize;
  const float* router;  // [experts, hidden]
  const float* gate;    // [experts, ffn, hidden]
  const float* up;      // [experts, ffn, hidden]
  const float* down;    // [experts, hidden, ffn]
};
void moe(const MoeToken& token, Gate kind, const float* x, float* y);

}  // namespace tinyvllm::ops::reference
