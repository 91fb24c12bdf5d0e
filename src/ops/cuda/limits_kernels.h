// Kernels that only measuring needs.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace tinyvllm::ops::cuda {

// Random bf16 numbers in [-1, 1): multiplying zeros takes less power, and so a card does it faster
// than anything real.
void launch_fill(void* data, size_t bytes, CUstream_st* stream);

// A way to read: how many loads of 16 bytes a thread has under way, in blocks of how many threads,
// how many of them for each multiprocessor (0: one for each piece).
struct ReadShape {
  int unroll;
  int threads;
  int blocks;
};
constexpr ReadShape kReadShapes[] = {
    {4, 256, 8}, {4, 512, 4},  {4, 1024, 2}, {4, 512, 0},  {8, 256, 8},  {8, 512, 2},
    {8, 512, 4}, {8, 1024, 2}, {8, 512, 0},  {16, 256, 4}, {16, 512, 2}, {16, 256, 0},
};
constexpr size_t kReadMultiple = size_t{16} * 8 * 1024;  // bytes: the largest piece of a block

// Reads all of `data`, a multiple of kReadMultiple, once. `sink` keeps the compiler from noticing
// that nobody wants to know.
void launch_read(const ReadShape& shape, const void* data, size_t bytes, uint32_t* sink,
                 CUstream_st* stream);

}  // namespace tinyvllm::ops::cuda
