// Made-up weights: the right size, no bias, the same from the same key.
#include "ops/reference/random_row.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "ops/reference/dequantize.h"

namespace tinyvllm::ops::reference {
namespace {

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                            DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
                            DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

TEST(RandomRow, HasTheSizeAskedForAndNoMean) {
  constexpr int64_t kWidth = 2048;
  constexpr int kRows = 64;
  for (const DType dtype : kTypes) {
    for (const float size : {0.02f, 1.0f}) {
      std::vector<char> row(row_bytes(dtype, kWidth));
      std::vector<float> values(kWidth);
      double sum = 0, squares = 0;
      for (int r = 0; r < kRows; ++r) {
        random_row(dtype, kWidth, size, static_cast<uint64_t>(r), row.data());
        dequantize(dtype, row.data(), kWidth, values.data());
        for (const float value : values) {
          sum += value;
          squares += value * value;
        }
      }
      const double n = kRows * kWidth;
      const double rms = std::sqrt(squares / n);
      EXPECT_GT(rms, size / 1.45) << dtype_name(dtype);
      EXPECT_LT(rms, size * 1.45) << dtype_name(dtype);
      // Five standard errors, were numbers independent; groups share a scale's sign, hence the 4.
      EXPECT_LT(std::fabs(sum / n), 4 * 5 * rms / std::sqrt(n)) << dtype_name(dtype);
    }
  }
}

TEST(RandomRow, DependsOnItsKeyAlone) {
  for (const DType dtype : kTypes) {
    std::vector<char> a(row_bytes(dtype, 512)), b(a.size()), c(a.size());
    random_row(dtype, 512, 0.1f, 7, a.data());
    random_row(dtype, 512, 0.1f, 7, b.data());
    random_row(dtype, 512, 0.1f, 8, c.data());
    EXPECT_EQ(a, b) << dtype_name(dtype);
    EXPECT_NE(a, c) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace tinyvllm::ops::reference
