// Tiles of query tokens of one head against tiles of keys, on the tensor cores, with a running
// softmax: scores never leave the registers. For prompts; K and V are halves or bytes, heads a
// multiple of 8 wide.
//
// A warp has 16 query tokens, or twice 16 where the registers hold them: then each load of K and V
// serves two products (2047 tokens of 32 heads, 64 wide, on an H200: 137 µs with one, 116 with
// two).
#include "ops/cuda/attention/kv_tile.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr float kLog2e = 1.4426950408889634f;

__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 16 query tokens from `row` on, as the tensor cores take them.
template <int kDim>
__device__ void load_queries(const AttentionArgs& a, const TileJob& job, const Rows& q, int head,
                             int row, uint32_t (&regs)[kDim / 16][4]) {
  const int lane = threadIdx.x % kWarp;
  const auto pair = [&](int r, int column) -> uint32_t {
    if (r >= job.queries || column >= a.kv.k_dim) return 0;
    const auto* from = static_cast<const __half*>(q.data) + (job.first_query + r) * q.stride +
                       static_cast<int64_t>(head) * a.kv.k_dim + column;
    return *reinterpret_cast<const uint32_t*>(from);
  };
  row += lane / 4;
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    const int column = 16 * s + 2 * (lane % 4);
    regs[s][0] = pair(row, column);
    regs[s][1] = pair(row + 8, column);
    regs[s][2] = pair(row, column + 8);
    regs[s][3] = pair(row + 8, column + 8);
  }
}

// The running softmax of 16 query tokens; of each row pair a lane has a quarter.
template <int kDim>
struct Softmax {
  static constexpr int kKeys = TileSize<kDim>::kKeys;
  float out[kDim / 8][4] = {};
  float most[2] = {-INFINITY, -INFINITY};
  float total[2] = {};

  // Scores of a tile of keys from `key` on become weights; what was added up before shrinks. In
  // the exponent of 2 throughout, scaled in the one multiplication that subtracts the maximum.
  template <bool kCapped>
  __device__ void weigh(const AttentionArgs& a, int key, int position,
                        float (&scores)[kKeys / 8][4]) {
    const int lane = threadIdx.x % kWarp;
    const float scale = kCapped ? 1.f : a.scale * kLog2e;
    if constexpr (kCapped) {
#pragma unroll
      for (auto& four : scores) {
#pragma unroll
        for (float& s : four) s = kLog2e * a.soft_cap * tanhf(s * a.scale / a.soft_cap);
      }
    }
    if (key + kKeys > position + 1 || a.kv.window > 0) {
      const int rows[2] = {position + lane / 4, position + lane / 4 + 8};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int p = key + n * 8 + 2 * (lane % 4) + i % 2;
          const bool seen = p <= rows[i / 2] && (a.kv.window == 0 || p > rows[i / 2] - a.kv.window);
          if (!seen) scores[n][i] = -INFINITY;
        }
      }
    }
    float shift[2];  // the maximum, scaled; 0 as long as nothing was seen
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float highest = most[r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        highest = fmaxf(highest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
      }
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
      shift[r] = highest == -INFINITY ? 0 : highest * scale;
      const float shrink = power_of_2(fmaf(most[r], scale, -shift[r]));
      most[r] = highest;
      total[r] *= shrink;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        out[n][2 * r] *= shrink;
        out[n][2 * r + 1] *= shrink;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = power_of_2(fmaf(scores[n][i], scale, -shift[i / 2]));
        total[i / 2] += scores[n][i];
      }
    }
  }
};

template <int kDim>
__device__ void write(const AttentionArgs& a, const TileJob& job, const Rows& y, int head, int row,
                      Softmax<kDim>& s) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    s.total[r] += __shfl_xor_sync(~0u, s.total[r], 1);
    s.total[r] += __shfl_xor_sync(~0u, s.total[r], 2);
    const int query = row + lane / 4 + 8 * r;
    if (query >= job.queries) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const int column = n * 8 + 2 * (lane % 4);
      if (column >= a.kv.v_dim) continue;
      const int64_t at = static_cast<int64_t>(head) * a.kv.v_dim + column;
      store(y, job.first_query + query, at, s.out[n][2 * r] / s.total[r]);
      store(y, job.first_query + query, at + 1, s.out[n][2 * r + 1] / s.total[r]);
    }
  }
}

template <int kDim, class Element, bool kCapped>
__global__ void __launch_bounds__(kTileThreads) tile_kernel(AttentionArgs a, Rows q, Rows y) {
  using T = TileSize<kDim>;
  extern __shared__ uint4 shared[];
  auto& tile = *reinterpret_cast<KvTile<kDim, Element>*>(shared);
  let_next_begin();
  wait_for_previous();

  TileJob job;
  job.sequence = blockIdx.z;
  // The last tiles see the most keys: they go first.
  const int tile_index = static_cast<int>(gridDim.y - 1 - blockIdx.y);
  const int begin = a.query_offsets[job.sequence];
  const int count = a.query_offsets[job.sequence + 1] - begin;
  if (tile_index * T::kQueries >= count) return;
  job.first_query = begin + tile_index * T::kQueries;
  job.queries = min(T::kQueries, count - tile_index * T::kQueries);
  job.first_position = a.positions[job.first_query];
  job.end_key = job.first_position + job.queries;
  const int lowest = a.kv.window > 0 ? max(0, job.first_position + 1 - a.kv.window) : 0;
  job.first_key = lowest / T::kKeys * T::kKeys;

  const int head = blockIdx.x;
  const int kv_head = head / (a.heads / a.kv.kv_heads);
  const int lane = threadIdx.x % kWarp;
  const int warp_row = threadIdx.x / kWarp * 16 * T::kM;

  tile.fetch(a, job, kv_head, job.first_key, 0);
  copies_commit();
  uint32_t queries[T::kM][kDim / 16][4];
  Softmax<kDim> softmax[T::kM];
#pragma unroll
  for (int m = 0; m < T::kM; ++m) {
    load_queries<kDim>(a, job, q, head, warp_row + 16 * m, queries[m]);
  }
  int stage = 0;
  for (int key = job.first_key; key < job.end_key; key += T::kKeys, stage ^= 1) {
    if (key + T::kKeys < job.end_key) {
      tile.fetch(a, job, kv_head, key + T::kKeys, stage ^ 1);
    }
    copies_commit();
    copies_wait<1>();
    __syncthreads();
    const Halves<kDim>& kv = tile.ready(stage);
    // Keys after the last of a warp's tokens are nothing to it.
    if (key < job.first_position + warp_row + 16 * T::kM) {
      float scores[T::kM][T::kKeys / 8][4] = {};
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) {
#pragma unroll
        for (int n = 0; n < T::kKeys / 16; ++n) {
          uint32_t b[4];
          load_matrices(b, &kv.k[n * 16 + lane / 16 * 8 + lane % 8][s * 16 + lane / 8 % 2 * 8]);
#pragma unroll
          for (int m = 0; m < T::kM; ++m) {
            mma(scores[m][2 * n], queries[m][s], b[0], b[1]);
            mma(scores[m][2 * n + 1], queries[m][s], b[2], b[3]);
          }
        }
      }
#pragma unroll
      for (int m = 0; m < T::kM; ++m) {
        softmax[m].template weigh<kCapped>(a, key, job.first_position + warp_row + 16 * m,
                                           scores[m]);
      }
#pragma unroll
      for (int n = 0; n < T::kKeys / 16; ++n) {
        uint32_t weights[T::kM][4];
#pragma unroll
        for (int m = 0; m < T::kM; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float(&p)[4] = scores[m][2 * n + i / 2];
            weights[m][i] = pack_halves(p[i % 2 * 2], p[i % 2 * 2 + 1]);
          }
        }
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) {
          uint32_t b[4];
          load_transposed(b, &kv.v[n * 16 + lane / 8 % 2 * 8 + lane % 8][d * 16 + lane / 16 * 8]);
#pragma unroll
          for (int m = 0; m < T::kM; ++m) {
            mma(softmax[m].out[2 * d], weights[m], b[0], b[1]);
            mma(softmax[m].out[2 * d + 1], weights[m], b[2], b[3]);
          }
        }
      }
    }
    __syncthreads();  // the next fetch writes where this tile was
  }
#pragma unroll
  for (int m = 0; m < T::kM; ++m) write<kDim>(a, job, y, head, warp_row + 16 * m, softmax[m]);
}

template <int kDim, class Element>
void launch(const AttentionArgs& a, const Rows& q, const Rows& y, Stream stream) {
  using T = TileSize<kDim>;
  constexpr size_t kShared = sizeof(KvTile<kDim, Element>);
  constexpr auto kPlain = tile_kernel<kDim, Element, false>;
  constexpr auto kCapped = tile_kernel<kDim, Element, true>;
  static const bool raised = [] {
    for (const auto kernel : {kPlain, kCapped}) allow_shared(kernel, kShared);
    return true;
  }();
  (void)raised;
  const dim3 grid(static_cast<unsigned>(a.heads),
                  static_cast<unsigned>((a.max_queries + T::kQueries - 1) / T::kQueries),
                  static_cast<unsigned>(a.num_sequences));
  launch_behind(a.soft_cap > 0 ? kCapped : kPlain, grid, kTileThreads, kShared, stream, a, q, y);
}

template <class Element>
void launch(const AttentionArgs& a, const Rows& q, const Rows& y, Stream stream) {
  if (a.kv.k_dim <= 64) return launch<64, Element>(a, q, y, stream);
  if (a.kv.k_dim <= 128) return launch<128, Element>(a, q, y, stream);
  launch<256, Element>(a, q, y, stream);
}

}  // namespace

bool supports_tiles(const AttentionArgs& a) {
  return a.kv.dtype != DType::kF32 && a.kv.k_dim == a.kv.v_dim && a.kv.k_dim % 8 == 0 &&
         a.kv.k_dim <= 256;
}

void attention_by_tile(const AttentionArgs& a, const Rows& q, const Rows& y, Stream stream) {
  if (q.rows == 0) return;
  a.kv.dtype == DType::kI8 ? launch<int8_t>(a, q, y, stream) : launch<__half>(a, q, y, stream);
}

}  // namespace tinyvllm::ops::cuda
