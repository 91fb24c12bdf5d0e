// One row of W, read once by one warp and multiplied with an x that lies in shared memory.
#pragma once

#include "ops/cuda/unpack.cuh"

namespace tinyvllm::ops::cuda {

// Columns of x in shared memory.
inline int64_t staged_columns(int64_t stride, Form form) {
  return form == Form::kHalf ? stride : stride + stride / 4;
}

__device__ inline void multiply(uint4 w, const __half* x, float& sum) {
  const uint4 xv = *reinterpret_cast<const uint4*>(x);
  const auto* a = reinterpret_cast<const __half2*>(&w);
  const auto* b = reinterpret_cast<const __half2*>(&xv);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 wf = __half22float2(a[i]);
    const float2 xf = __half22float2(b[i]);
    sum = fmaf(wf.x, xf.x, sum);
    sum = fmaf(wf.y, xf.y, sum);
  }
}

// What a lane holds of a row, and its products with x.
template <Form kForm>
struct RowStream {
  static constexpr int kAhead = 2;  // loads under way
  using Piece = Codes<kForm>;
  Piece ahead[kAhead];
  const Packed& w;
  const int64_t row;
  const int lane;
  const int64_t pieces;

  __device__ RowStream(const Packed& matrix, int64_t r)
      : w(matrix), row(r), lane(threadIdx.x % kWarp), pieces(matrix.stride / kSpan) {
    fetch(0);
  }
  __device__ void fetch(int64_t first) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int64_t at = first + i * kWarp + lane;
      if (at < pieces) ahead[i].load(w, row, at);
    }
  }
  __device__ void run(const __half* x, float& sum) {
    for (int64_t first = 0; first < pieces; first += kAhead * kWarp) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int64_t at = first + i * kWarp + lane;
        if (at < pieces) add(ahead[i], x + staged_at<kForm>(at * kSpan), sum);
      }
      fetch(first + kAhead * kWarp);
    }
  }
  __device__ static void add(const Piece& piece, const __half* x, float& sum) {
    const auto* xv = reinterpret_cast<const uint4*>(x);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float products = 0;
      float total = 0;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const uint4 eight = xv[2 * half + q];
        const auto* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 xf = __half22float2(pairs[i]);
          const int column = 16 * half + 8 * q + 2 * i;
          products = fmaf(piece.code(column), xf.x, products);
          products = fmaf(piece.code(column + 1), xf.y, products);
          total += xf.x + xf.y;
        }
      }
      sum = fmaf(piece.scale[half].x, products, sum);
      if constexpr (kForm != Form::k8) sum = fmaf(piece.scale[half].y, total, sum);
    }
  }
};

template <>
struct RowStream<Form::kHalf> {
  static constexpr int kAhead = 8;
  uint4 ahead[kAhead];
  const uint4* w;
  const int lane;
  const int64_t pieces;  // of 8 columns

  __device__ RowStream(const Packed& matrix, int64_t row)
      : w(reinterpret_cast<const uint4*>(static_cast<const __half*>(matrix.low) +
                                         row * matrix.stride)),
        lane(threadIdx.x % kWarp),
        pieces(matrix.stride / 8) {
    fetch(0);
  }
  __device__ void fetch(int64_t first) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int64_t at = first + i * kWarp + lane;
      ahead[i] = at < pieces ? __ldcs(w + at) : uint4{};
    }
  }
  __device__ void run(const __half* x, float& sum) {
    for (int64_t first = 0; first < pieces; first += kAhead * kWarp) {
      uint4 now[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) now[i] = ahead[i];
      if (first + kAhead * kWarp < pieces) fetch(first + kAhead * kWarp);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int64_t at = first + i * kWarp + lane;
        if (at < pieces) multiply(now[i], x + at * 8, sum);
      }
    }
  }
};

}  // namespace tinyvllm::ops::cuda
