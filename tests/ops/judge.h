// Compares what a kernel computed with what the reference says, element by element.
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <string>

#include "tests/ops/harness.h"

namespace tinyvllm::ops {

constexpr float kEpsilon = 0x1p-24f;  // half an ulp of 1: the rounding of one float operation

inline void expect_close(float actual, float expected, float tolerance, const std::string& where) {
  EXPECT_LE(std::fabs(actual - expected), tolerance)
      << where << ": " << actual << ", reference " << expected;
}

}  // namespace tinyvllm::ops
