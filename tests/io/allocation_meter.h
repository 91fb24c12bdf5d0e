// The largest single allocation since the last reset: hostile files must not talk us into big ones.
// Counts every operator new of the test binary (allocation_meter_test.cc).
#pragma once

#include <cstddef>

namespace tinyvllm {

void reset_largest_allocation();
size_t largest_allocation();

}  // namespace tinyvllm
