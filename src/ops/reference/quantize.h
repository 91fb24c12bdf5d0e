// Floats to the weight types that files store, row by row: the inverse of reading a row. Every type
// is a few integer codes per number plus scales; codes are chosen for the scales as stored, after
// their own rounding.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace tinyvllm::ops::reference {

bool can_quantize(DType dtype);

// `n` finite floats, a multiple of the type's block and none beyond ±65504 (except to F32 and
// BF16), to row_bytes(dtype, n) bytes. The target needs no alignment.
void quantize_row(DType dtype, const float* values, int64_t n, void* row);

}  // namespace tinyvllm::ops::reference
