// Softmax and the largest elements of rows: what becomes of logits.
#pragma once

#include <span>

#include "device/exec_context.h"

namespace tinyvllm::ops {

// y = e^x / Σ e^x, row by row; y may be x.  x, y: [rows, width]
void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y);

struct Ranked {
  int32_t id = -1;
  float value = 0;
  bool operator==(const Ranked&) const = default;
};

// The k largest of each row, in descending order; equal values by ascending id, NaN last. Rows
// shorter than k leave the rest at id -1.  x: [rows, width], best: [rows, k]
void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best);

}  // namespace tinyvllm::ops
