// Stored weights as numbers: what each byte of a row means, element by element, in fp32. The truth
// for every kernel that reads weights; written to be read, not to be fast.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace tinyvllm::ops::reference {

// The types that are computed with. Others are known by name and size only.
bool can_dequantize(DType dtype);

// row: `elements` elements (a multiple of the type's block) → out: [elements]. Any alignment.
void dequantize(DType dtype, const void* row, int64_t elements, float* out);

}  // namespace tinyvllm::ops::reference
