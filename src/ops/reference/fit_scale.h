// The heart of every quantizer: the scale (and offset) under which a group of numbers, rounded to a
// few integer codes, is off by the least sum of squares. Rounding makes that sum bumpy, so several
// scales around the obvious one are tried; for fixed codes the best scale is a line fit with a
// closed form.
#pragma once

#include <cstdint>

namespace tinyvllm::ops::reference {

constexpr int kMaxGroup = 32;  // numbers that share a scale, in any of our formats

// x ≈ scale · q for codes -levels ≤ q < levels. The scale may be negative: the side that has one
// code more belongs to whichever extreme is larger. 0 when all x are 0.
float fit_scale(const float* x, int n, int levels);

// x ≈ scale · q + min for codes 0 ≤ q ≤ top.
struct ScaleMin {
  float scale = 0;
  float min = 0;
};
enum class MinSign { kAny, kNotPositive };
ScaleMin fit_scale_min(const float* x, int n, int top, MinSign sign);

// The code 0 ≤ q ≤ top whose scale · q + min is nearest to each x. A scale of 0 gives codes 0.
void encode(const float* x, int n, ScaleMin fit, int top, uint8_t* codes);

// The sum of squares that those codes leave over.
float fit_error(const float* x, int n, ScaleMin fit, int top);

}  // namespace tinyvllm::ops::reference
