#include "ops/reference/fit_scale.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tinyvllm::ops::reference {
namespace {

// Sums are kept in four lanes, so that compilers may vectorize them without being allowed to
// reorder float additions.
constexpr int kLanes = 4;

// Scales tried: the one that maps the extremes to the outermost codes, and what it would be for up
// to one code fewer or more. Finer steps gain under 0.3% of the error.
constexpr float kNudges[] = {0, -1, -0.75f, -0.5f, -0.25f, 0.25f, 0.5f, 0.75f, 1};
constexpr int kPolish = 2;  // then rounds of: codes for the best scale, best scale for the codes

// A later try must beat an earlier one by more than the rounding of float sums: extremes that lie
// exactly on a code stay there.
constexpr float kBetter = 1 + 1e-6f;

// Numbers below this are zeros: no F16 scale could show them.
constexpr float kNothing = 1e-20f;

// Adding and subtracting 1.5 · 2^23 leaves no bits for a fraction: rounds to the nearest integer,
// ties to even, for |v| < 2^22.
inline float round_to_int(float v) {
  constexpr float kShift = 12582912.0f;
  return (v + kShift) - kShift;
}

inline float code_of(float x, float inverse, float offset, float top) {
  const float v = x * inverse + offset;
  const float clipped = v < 0 ? 0 : v;
  return round_to_int(clipped > top ? top : clipped);
}

// What a line fit x ≈ scale · q + min needs to know.
struct Moments {
  float xq = 0;
  float q = 0;
  float qq = 0;
};

// Codes are q = round(x · inverse + offset) in [0, top]; the moments are of q − zero.
Moments moments(const float* x, int n, float inverse, float offset, float top, float zero) {
  float xq[kLanes] = {}, sum[kLanes] = {}, qq[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane];
      const float q = code_of(value, inverse, offset, top) - zero;
      xq[lane] += value * q;
      sum[lane] += q;
      qq[lane] += q * q;
    }
  }
  Moments m;
  for (int lane = 0; lane < kLanes; ++lane) {
    m.xq += xq[lane];
    m.q += sum[lane];
    m.qq += qq[lane];
  }
  return m;
}

float mean_of(const float* x, int n) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) / static_cast<float>(n);
}

// The best line for the codes that some other scale gave, and by how much it lowers the sum of
// squares around the mean.
struct Candidate {
  ScaleMin fit;
  float gain = 0;
};

// The moments are of x − mean, whose sum is zero: sums of squares around the mean do not drown in a
// large offset.
Candidate line_fit(const Moments& m, float mean, float n, MinSign sign) {
  if (const float spread = m.qq - m.q * m.q / n; spread > 0) {
    const float scale = m.xq / spread;
    const float min = mean - scale * m.q / n;
    if (sign == MinSign::kAny || min <= 0) return {{scale, min}, scale * m.xq};
  }
  if (m.qq == 0) return {};
  const float xq = m.xq + mean * m.q;  // a line through zero: of x itself
  return {{xq / m.qq, 0}, xq * xq / m.qq - n * mean * mean};
}

}  // namespace

float fit_scale(const float* x, int n, int levels) {
  CHECK(n % kLanes == 0 && n <= kMaxGroup) << "a group of " << n;
  float extreme = 0;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (std::fabs(extreme) < kNothing) return 0;

  const auto zero = static_cast<float>(levels);
  const float top = 2 * zero - 1;
  float best_scale = -extreme / zero;
  float best_gain = 0;
  const auto consider = [&](float inverse) {
    const Moments m = moments(x, n, inverse, zero, top, zero);
    if (m.qq == 0) return;
    const float scale = m.xq / m.qq;
    if (scale * m.xq <= best_gain * kBetter) return;
    best_gain = scale * m.xq;
    best_scale = scale;
  };
  for (const float nudge : kNudges) consider(-(zero + nudge) / extreme);
  for (int round = 0; round < kPolish; ++round) consider(1 / best_scale);
  return best_scale;
}

ScaleMin fit_scale_min(const float* x, int n, int top, MinSign sign) {
  CHECK(n % kLanes == 0 && n <= kMaxGroup) << "a group of " << n;
  float low = x[0], high = x[0];
  for (int i = 1; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (sign == MinSign::kNotPositive) low = std::min(low, 0.0f);
  if (high - low < kNothing) return {0, low};

  const auto levels = static_cast<float>(top);
  const float mean = mean_of(x, n);
  float centred[kMaxGroup];
  for (int i = 0; i < n; ++i) centred[i] = x[i] - mean;
  Candidate best{{(high - low) / levels, low}, 0};
  const auto consider = [&](float inverse, float min) {
    const Moments m = moments(centred, n, inverse, (mean - min) * inverse, levels, 0);
    const Candidate c = line_fit(m, mean, static_cast<float>(n), sign);
    if (c.gain > best.gain * kBetter) best = c;
  };
  for (const float nudge : kNudges) consider((levels + nudge) / (high - low), low);
  for (int round = 0; round < kPolish; ++round) {
    if (best.fit.scale > kNothing) consider(1 / best.fit.scale, best.fit.min);
  }
  return best.fit;
}

void encode(const float* x, int n, ScaleMin fit, int top, uint8_t* codes) {
  const float inverse = std::fabs(fit.scale) < kNothing ? 0 : 1 / fit.scale;
  for (int i = 0; i < n; ++i) {
    codes[i] = static_cast<uint8_t>(code_of(x[i] - fit.min, inverse, 0, static_cast<float>(top)));
  }
}

float fit_error(const float* x, int n, ScaleMin fit, int top) {
  const float inverse = std::fabs(fit.scale) < kNothing ? 0 : 1 / fit.scale;
  float lanes[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane] - fit.min;
      const float rest = value - fit.scale * code_of(value, inverse, 0, static_cast<float>(top));
      lanes[lane] += rest * rest;
    }
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace tinyvllm::ops::reference
