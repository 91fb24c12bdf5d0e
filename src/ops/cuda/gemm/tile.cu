// Matrix product with one tile and one order of summation for any number of rows of x, so that a
// row's result does not depend on its company: what --deterministic runs instead of cuBLASLt. 64
// rows of x against 64 rows of W, 32 columns at a time.
#include "ops/cuda/attention/mma.cuh"
#include "ops/cuda/common.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kPitch = kDepth + 8;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// 64 rows of kDepth columns to shared memory, zeros beyond the matrix. Rows are aligned to 8
// halves.
__device__ void fetch(const __half* from, int64_t stride, int64_t rows, int64_t columns,
                      int64_t row, int64_t column, __half (*to)[kPitch]) {
  for (int i = threadIdx.x; i < kTile * (kDepth / 8); i += kThreads) {
    const int r = i / (kDepth / 8);
    const int c = i % (kDepth / 8) * 8;
    const bool there = row + r < rows && column + c < columns;
    copy_async<16>(&to[r][c], from + (there ? (row + r) * stride + column + c : 0), there);
  }
}

__global__ void __launch_bounds__(kThreads)
    tile_kernel(const __half* w, int64_t out, const __half* x, int64_t x_rows, int64_t x_stride,
                int64_t stride, Rows y, bool add) {
  __shared__ __align__(16) __half xs[2][kTile][kPitch];
  __shared__ __align__(16) __half ws[2][kTile][kPitch];
  const int64_t x_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t w_row = static_cast<int64_t>(blockIdx.x) * kTile;
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;

  const auto fetch_both = [&](int64_t column, int stage) {
    fetch(x, x_stride, x_rows, stride, x_row, column, xs[stage]);
    fetch(w, stride, out, stride, w_row, column, ws[stage]);
    copies_commit();
  };
  float sums[kTile / 8][4] = {};
  fetch_both(0, 0);
  int stage = 0;
  for (int64_t column = 0; column < stride; column += kDepth, stage ^= 1) {
    if (column + kDepth < stride) {
      fetch_both(column + kDepth, stage ^ 1);
    } else {
      copies_commit();
    }
    copies_wait<1>();
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kDepth / 16; ++s) {
      uint32_t a[4];
      load_matrices(a, &xs[stage][warp * 16 + lane % 16][s * 16 + lane / 16 * 8]);
#pragma unroll
      for (int n = 0; n < kTile / 16; ++n) {
        uint32_t b[4];
        load_matrices(b, &ws[stage][n * 16 + lane / 16 * 8 + lane % 8][s * 16 + lane / 8 % 2 * 8]);
        mma(sums[2 * n], a, b[0], b[1]);
        mma(sums[2 * n + 1], a, b[2], b[3]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t row = x_row + warp * 16 + lane / 4 + i / 2 * 8;
      const int64_t column = w_row + n * 8 + 2 * (lane % 4) + i % 2;
      if (row >= x_rows || column >= out) continue;
      store(y, row, column, add ? load(y, row, column) + sums[n][i] : sums[n][i]);
    }
  }
}

}  // namespace

void tile_gemm(const Packed& w, const Rows& x, const Rows& y, bool add, Stream stream) {
  if (x.rows == 0) return;
  const dim3 grid(static_cast<unsigned>((w.out + kTile - 1) / kTile),
                  static_cast<unsigned>((x.rows + kTile - 1) / kTile));
  tile_kernel<<<grid, kThreads, 0, stream>>>(static_cast<const __half*>(w.low), w.out,
                                             static_cast<const __half*>(x.data), x.rows, x.stride,
                                             w.stride, y, add);
}

}  // namespace tinyvllm::ops::cuda
