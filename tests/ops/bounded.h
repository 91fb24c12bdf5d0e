// Numbers as a card has them, and how far its results may be from the reference's, counted rounding
// by rounding. Activations are halves there, weights are halves or have scales that
// are, sums are floats.
#pragma once

#include "ops/block_scales.h"
#include "ops/reference/dequantize.h"
#include "ops/reference/ops.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {

constexpr float kHalf = 0x1p-11f;       // the rounding to a half
constexpr float kLeastHalf = 0x1p-25f;  // and that of numbers under 2^-14

struct Bounded {
  float value = 0;
  float error = 0;
};
using BoundedRow = std::vector<Bounded>;

inline void expect_within(float actual, const Bounded& expected, const std::string& where) {
  expect_close(actual, expected.value, expected.error, where);
}

inline float as_half(float v) { return f16_to_f32(f32_to_f16(v)); }
inline Bounded as_half(const Bounded& b) {
  return {b.value, b.error + kHalf * (std::fabs(b.value) + b.error) + kLeastHalf};
}
inline BoundedRow as_halves(BoundedRow row) {
  for (Bounded& b : row) b = as_half(b);
  return row;
}
// Floats, and what becomes of them as halves.
inline BoundedRow halves(const float* x, int64_t n) {
  BoundedRow row;
  for (int64_t i = 0; i < n; ++i) row.push_back({as_half(x[i]), 0});
  return row;
}
inline Bounded plus(const Bounded& b, float v) {
  return {b.value + v, b.error + 2 * kEpsilon * (std::fabs(b.value) + std::fabs(v) + b.error)};
}

// Many roundings, each as likely up as down: seven of their sum's standard deviations, e/√3 each,
// are 4 · √Σe²; and no more than all at their worst.
struct Roundings {
  double worst = 0;
  double squares = 0;

  void add(double e) {
    worst += std::fabs(e);
    squares += e * e;
  }
  double sum() const { return std::min(worst, 4 * std::sqrt(squares)); }
};

// On their way into the tensor cores weights become halves, and where y is one, cuBLASLt may add up
// parts of a sum that are.
enum class Through { kTensorCores, kFloats };

// Row of W times x. Sums are floats, in any order: of 16 products at a time, or with codes and
// minimum apart, which are up to four times their size.
inline Bounded product(const float* w, const BoundedRow& x, Through way = Through::kTensorCores) {
  double value = 0;
  Roundings products;
  Roundings of_x;
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double here = static_cast<double>(w[i]) * x[i].value;
    value += here;
    products.add(here);
    of_x.add(static_cast<double>(w[i]) * x[i].error);
    total += std::fabs(x[i].value);
  }
  const double floats = (static_cast<double>(x.size()) / 4 + 128) * kEpsilon;
  double error = of_x.sum() + floats * (products.worst + of_x.worst);
  if (way == Through::kTensorCores) error += 2 * kHalf * products.sum() + kLeastHalf * total;
  return {static_cast<float>(value), static_cast<float>(error)};
}

// No gate is steeper than 1.13; __expf and tanh leave some 64 roundings of their argument.
inline Bounded gated(Gate kind, const Bounded& g, const Bounded& u) {
  const float gate = reference::gate(kind, g.value);
  const float off = 1.13f * g.error + 64 * kEpsilon * std::fabs(g.value);
  return {gate * u.value, off * std::fabs(u.value) + (std::fabs(gate) + off) * u.error};
}

// Sums run over n/64 terms per thread or fewer. LayerNorm's mean adds as many of the largest |x|.
inline BoundedRow normed(NormKind kind, const Matrix& weight, const Matrix* bias, const float* x) {
  const int64_t n = weight.cols;
  std::vector<float> y(static_cast<size_t>(n));
  reference::norm(kind, kNormEps, n, weight.row(0), bias == nullptr ? nullptr : bias->row(0), x,
                  y.data());
  const float roundings = static_cast<float>(n) / 64 + 32;
  const float error = roundings * kEpsilon * (1 + largest(y.data(), n));
  BoundedRow row;
  for (const float v : y) row.push_back({v, error});
  return row;
}

// Where the codes lie in a block of 256, and the largest of them.
struct Codes256 {
  DType dtype;
  int begin;
  int end;
  float top;
};
constexpr Codes256 kCodes256[] = {
    {DType::kQ2_K, 16, 80, 3},   {DType::kQ3_K, 0, 96, 7},   {DType::kQ4_K, 16, 144, 15},
    {DType::kQ5_K, 16, 176, 31}, {DType::kQ6_K, 0, 192, 63},
};

inline std::vector<float> floats_of(const Weights& w) {
  std::vector<float> values(static_cast<size_t>(w.out * w.in));
  reference::dequantize(w.dtype, w.bytes.data(), w.out * w.in, values.data());
  return values;
}
// What the file would say with all codes the same, and without its minima.
inline std::vector<float> floats_with(Weights w, const Codes256& at, uint8_t codes, bool has_min) {
  const int min = block_scales(w.dtype).min;
  for (size_t b = 0; b < w.bytes.size();
       b += static_cast<size_t>(dtype_info(w.dtype).block_bytes)) {
    std::fill(w.bytes.data() + b + at.begin, w.bytes.data() + b + at.end, codes);
    if (!has_min && min >= 0) std::fill_n(w.bytes.data() + b + min, 2, uint8_t{0});
  }
  return floats_of(w);
}

// The weights that a card has instead of the file's: floats became halves; in blocks of 256, scale
// and minimum of each 16 or 32 columns did. Blocks of 32 have halves as they are.
inline std::vector<float> on_card(const Weights& w) {
  std::vector<float> values = floats_of(w);
  if (!is_quantized(w.dtype)) {
    for (float& v : values) v = as_half(v);
  }
  for (const Codes256& at : kCodes256) {
    if (at.dtype != w.dtype) continue;
    const std::vector<float> min = floats_with(w, at, 0, true);
    const std::vector<float> low = floats_with(w, at, 0, false);
    const std::vector<float> high = floats_with(w, at, 0xFF, false);
    for (size_t i = 0; i < values.size(); ++i) {
      const float scale = (high[i] - low[i]) / at.top;
      const float code = scale == 0 ? 0 : std::round((values[i] - min[i]) / scale);
      values[i] = as_half(scale) * code + as_half(min[i]);
    }
  }
  return values;
}

}  // namespace tinyvllm::ops
