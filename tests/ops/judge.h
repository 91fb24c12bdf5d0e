// Compares what a kernel computed with what the reference says, element by element, on any device.
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <string>

#include "ops/softmax.h"
#include "tests/ops/harness.h"

namespace tinyvllm::ops {

constexpr float kEpsilon = 0x1p-24f;  // half an ulp of 1: the rounding of one float operation

inline void expect_close(float actual, float expected, float tolerance, const std::string& where) {
  EXPECT_LE(std::fabs(actual - expected), tolerance)
      << where << ": " << actual << ", reference " << expected;
}

inline bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

inline float largest(const float* x, int64_t n) {
  float m = 0;
  for (int64_t i = 0; i < n; ++i) m = std::max(m, std::fabs(x[i]));
  return m;
}

// Rows of many equal values, and some that are no numbers.
inline Matrix rows_with_ties(int64_t rows, int64_t width) {
  Matrix x = random_matrix(rows, width, 2);
  for (float& v : x.values) v = std::round(v * 50);
  if (rows > 0 && width > 20) {
    x.row(0)[7] = NAN;
    x.row(0)[11] = -INFINITY;
    x.row(0)[width - 1] = INFINITY;
  }
  return x;
}

// best: [rows, k], against sorting everything.
inline void expect_front_of_sorted_rows(const Matrix& x, int k, const std::vector<Ranked>& best) {
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<int32_t> order(static_cast<size_t>(x.cols));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const float u = x.row(r)[a];
      const float v = x.row(r)[b];
      return std::isnan(u) || std::isnan(v) ? !std::isnan(u) && std::isnan(v) : u > v;
    });
    for (int i = 0; i < k; ++i) {
      const int32_t id = i < x.cols ? order[static_cast<size_t>(i)] : -1;
      const Ranked& found = best[static_cast<size_t>(r * k + i)];
      ASSERT_EQ(found.id, id) << "k " << k << " width " << x.cols << " place " << i;
      const float value = id < 0 ? 0 : x.row(r)[id];
      ASSERT_TRUE(same_bits(&found.value, &value, 1)) << found.value << " " << value;
    }
  }
}

}  // namespace tinyvllm::ops
