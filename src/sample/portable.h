// Marks for functions that a card runs too. nvcc sees them as C++17 and turns nothing into an FMA
// (src/CMakeLists.txt), so that they round there as they do here.
#pragma once

#ifdef __CUDACC__
#define TINYVLLM_ANYWHERE __host__ __device__
#define TINYVLLM_BLOCK __device__  // calls into a block of threads: the card's, or a test's
#else
#define TINYVLLM_ANYWHERE
#define TINYVLLM_BLOCK
#endif
