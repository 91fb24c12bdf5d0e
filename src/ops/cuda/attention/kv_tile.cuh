// A tile of keys and values in shared memory, as by_tile.cu multiplies it: halves, the next tile on
// its way while this one is used. A cache of bytes travels as bytes, which become halves, times
// their scales, when it is their turn.
#pragma once

#include "ops/cuda/attention/mma.cuh"
#include "ops/cuda/kv_address.cuh"

namespace tinyvllm::ops::cuda {

constexpr int kTileThreads = 4 * kWarp;

template <int kDim>
struct TileSize {
  static constexpr int kKeys = kDim <= 128 ? 64 : 32;
  static constexpr int kM = kDim <= 64 ? 2 : 1;  // times 16 query tokens a warp
  static constexpr int kQueries = 16 * kM * (kTileThreads / kWarp);
  static constexpr int kPitch = kDim + 8;  // halves of a row: eight rows in eight banks
};

template <int kDim>
struct Halves {
  using Size = TileSize<kDim>;
  __half k[Size::kKeys][Size::kPitch];
  __half v[Size::kKeys][Size::kPitch];
};

// What one block is about.
struct TileJob {
  int sequence;
  int first_query;  // row of q
  int queries;
  int first_position;
  int first_key;  // a multiple of the tile
  int end_key;
};

// The position of a tile's row in the cache. Past the end and before the window there are zeros,
// whatever memory holds.
struct KeyPlace {
  bool there;
  int64_t block;
  int offset;

  __device__ KeyPlace(const AttentionArgs& a, const TileJob& job, int position) {
    const int lowest = a.kv.window > 0 ? max(0, job.first_position + 1 - a.kv.window) : 0;
    there = position < job.end_key && position >= lowest;
    const int32_t* table = a.block_table + static_cast<int64_t>(job.sequence) * a.max_blocks;
    block = there ? table[position / a.kv.block_size] : 0;
    offset = there ? position % a.kv.block_size : 0;
  }
};

// Keys and values from `key` on, as the cache has them; zeros beside the head, too.
template <int kDim, class T>
__device__ void fetch_numbers(const AttentionArgs& a, const TileJob& job, int kv_head, int key,
                              int pitch, T* k, T* v) {
  constexpr int kChunks = kDim / 8;
  for (int i = threadIdx.x; i < TileSize<kDim>::kKeys * kChunks; i += kTileThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    const KeyPlace place(a, job, key + row);
    const bool there = place.there && column < a.kv.k_dim;
    const int at = there ? column : 0;
    copy_async<8 * sizeof(T)>(k + row * pitch + column,
                              k_at<T>(a.kv, place.block, kv_head, place.offset) + at, there);
    copy_async<8 * sizeof(T)>(v + row * pitch + column,
                              v_at<T>(a.kv, place.block, kv_head, place.offset) + at, there);
  }
}

template <int kDim, class T>
struct KvTile;

template <int kDim>
struct KvTile<kDim, __half> {
  Halves<kDim> stages[2];

  __device__ void fetch(const AttentionArgs& a, const TileJob& job, int kv_head, int key,
                        int stage) {
    Halves<kDim>& to = stages[stage];
    fetch_numbers<kDim>(a, job, kv_head, key, TileSize<kDim>::kPitch, to.k[0], to.v[0]);
  }
  __device__ const Halves<kDim>& ready(int stage) { return stages[stage]; }
};

template <int kDim>
struct KvTile<kDim, int8_t> {
  static constexpr int kKeys = TileSize<kDim>::kKeys;
  struct Bytes {
    int8_t k[kKeys][kDim];
    int8_t v[kKeys][kDim];
    float k_scales[kKeys];
    float v_scales[kKeys];
  };
  Bytes stages[2];
  Halves<kDim> halves;

  __device__ void fetch(const AttentionArgs& a, const TileJob& job, int kv_head, int key,
                        int stage) {
    Bytes& to = stages[stage];
    fetch_numbers<kDim>(a, job, kv_head, key, kDim, to.k[0], to.v[0]);
    for (int row = threadIdx.x; row < kKeys; row += kTileThreads) {
      const KeyPlace place(a, job, key + row);
      copy_async<4>(&to.k_scales[row], k_scale_at(a.kv, place.block, kv_head, place.offset),
                    place.there);
      copy_async<4>(&to.v_scales[row], v_scale_at(a.kv, place.block, kv_head, place.offset),
                    place.there);
    }
  }
  // Between two barriers: the bytes have arrived, and nobody uses the tile before any more.
  __device__ const Halves<kDim>& ready(int stage) {
    constexpr int kChunks = kDim / 8;
    const Bytes& from = stages[stage];
    for (int i = threadIdx.x; i < kKeys * kChunks; i += kTileThreads) {
      const int row = i / kChunks;
      const int column = i % kChunks * 8;
      scale8(&from.k[row][column], from.k_scales[row], &halves.k[row][column]);
      scale8(&from.v[row][column], from.v_scales[row], &halves.v[row][column]);
    }
    __syncthreads();
    return halves;
  }

 private:
  // n · scale is n/128, which a half holds, times 128 · scale, which is about the largest number.
  __device__ static void scale8(const int8_t* from, float scale, __half* to) {
    const uint2 eight = *reinterpret_cast<const uint2*>(from);
    const __half2 factor = __half2half2(to_half(128 * scale));
    const auto scaled = [&](__half2 n) {
      const __half2 share =
          __hfma2(n, __float2half2_rn(1.f / 128), __float2half2_rn(-kByteOffset / 128));
      return as_register(__hmul2(share, factor));
    };
    *reinterpret_cast<uint4*>(to) = {
        scaled(offset_halves<0>(eight.x)), scaled(offset_halves<2>(eight.x)),
        scaled(offset_halves<0>(eight.y)), scaled(offset_halves<2>(eight.y))};
  }
};

}  // namespace tinyvllm::ops::cuda
