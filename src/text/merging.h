// The merge loop of byte-pair encoding, on its own: symbols in, symbols out.
#pragma once

#include <cstdint>
#include <vector>

#include "text/merge_table.h"

namespace tinyvllm {

// Joins pairs in `symbols`, lowest rank first and leftmost among equals, until none merges.
// O(n log n); short inputs take a path without a heap.
void merge_symbols(const MergeTable& merges, std::vector<int32_t>& symbols);

}  // namespace tinyvllm
