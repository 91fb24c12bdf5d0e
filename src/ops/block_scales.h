// Where quantized blocks keep the half-floats that everything in them is multiplied with.
#pragma once

#include "base/dtype.h"

namespace tinyvllm::ops {

// Offsets in a block; -1 for none.
struct BlockScales {
  int scale = -1;
  int min = -1;
};

constexpr BlockScales block_scales(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
      return {0, -1};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {};
  }
}

}  // namespace tinyvllm::ops
