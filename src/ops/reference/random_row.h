// Random weights made directly in the form that files store: random codes under sane scales, many
// times faster than quantizing random floats. A row depends on its key alone, so threads may make
// rows in any order, and the same key gives the same bytes everywhere.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace tinyvllm::ops::reference {

// The types that can be quantized can be made up.
bool can_randomize(DType dtype);

// `n` numbers (a multiple of the type's block) with mean 0 and a root mean square of about `size`:
// within a factor of √2 where the type's numbers are made from bits.
void random_row(DType dtype, int64_t n, float size, uint64_t key, void* row);

}  // namespace tinyvllm::ops::reference
