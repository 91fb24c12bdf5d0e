// Tiles of 64 query tokens of one head against tiles of keys, on the tensor cores, with a running
// softmax: scores never leave the registers. For prompts; K and V are halves, heads a multiple of 8
// wide. The next tile of keys is on its way while this one is multiplied.
#include "ops/cuda/attention/mma.cuh"
#include "ops/cuda/kv_address.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kQueries = 16 * kWarps;  // 16 rows a warp
constexpr float kLog2e = 1.4426950408889634f;

template <int kDim>
struct Tile {
  static constexpr int kKeys = kDim <= 128 ? 64 : 32;
  static constexpr int kPitch = kDim + 8;  // halves of a row: eight rows in eight banks
  __half k[2][kKeys][kPitch];
  __half v[2][kKeys][kPitch];
};

// What one block is about.
struct Job {
  int sequence;
  int first_query;  // row of q
  int queries;
  int first_position;
  int first_key;  // a multiple of the tile
  int end_key;
};

template <int kDim>
__device__ void fetch(const AttentionArgs& a, const Job& job, int kv_head, int key, __half* k,
                      __half* v) {
  using T = Tile<kDim>;
  constexpr int kChunks = kDim / 8;
  const int32_t* table = a.block_table + static_cast<int64_t>(job.sequence) * a.max_blocks;
  const int lowest = a.kv.window > 0 ? max(0, job.first_position + 1 - a.kv.window) : 0;
  for (int i = threadIdx.x; i < T::kKeys * kChunks; i += kThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    const int p = key + row;
    // Past the end, before the window and beside the head there are zeros, whatever memory holds.
    const bool there = p < job.end_key && p >= lowest && column < a.kv.k_dim;
    const int64_t block = there ? table[p / a.kv.block_size] : 0;
    const int offset = there ? p % a.kv.block_size : 0;
    const int at = there ? column : 0;
    copy_async(k + row * T::kPitch + column, k_at<__half>(a.kv, block, kv_head, offset) + at,
               there);
    copy_async(v + row * T::kPitch + column, v_at<__half>(a.kv, block, kv_head, offset) + at,
               there);
  }
}

// A 16-row piece of Q as the tensor cores take it, scaled so that e^x is 2^x.
template <int kDim>
__device__ void load_queries(const AttentionArgs& a, const Job& job, const Rows& q, int head,
                             uint32_t (&regs)[kDim / 16][4]) {
  const int lane = threadIdx.x % kWarp;
  const int row = threadIdx.x / kWarp * 16 + lane / 4;
  const auto pair = [&](int r, int column) -> uint32_t {
    if (r >= job.queries || column >= a.kv.k_dim) return 0;
    const auto* from = static_cast<const __half*>(q.data) + (job.first_query + r) * q.stride +
                       static_cast<int64_t>(head) * a.kv.k_dim + column;
    return *reinterpret_cast<const uint32_t*>(from);
  };
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    const int column = 16 * s + 2 * (lane % 4);
    regs[s][0] = pair(row, column);
    regs[s][1] = pair(row + 8, column);
    regs[s][2] = pair(row, column + 8);
    regs[s][3] = pair(row + 8, column + 8);
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) tile_kernel(AttentionArgs a, Rows q, Rows y) {
  using T = Tile<kDim>;
  extern __shared__ uint4 shared[];
  T& tile = *reinterpret_cast<T*>(shared);

  Job job;
  job.sequence = blockIdx.z;
  // The last tiles see the most keys: they go first.
  const int tile_index = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int begin = a.query_offsets[job.sequence];
  const int count = a.query_offsets[job.sequence + 1] - begin;
  if (tile_index * kQueries >= count) return;
  job.first_query = begin + tile_index * kQueries;
  job.queries = min(kQueries, count - tile_index * kQueries);
  job.first_position = a.positions[job.first_query];
  job.end_key = job.first_position + job.queries;
  const int lowest = a.kv.window > 0 ? max(0, job.first_position + 1 - a.kv.window) : 0;
  job.first_key = lowest / T::kKeys * T::kKeys;

  const int head = blockIdx.y;
  const int kv_head = head / (a.heads / a.kv.kv_heads);
  const int lane = threadIdx.x % kWarp;
  const int warp_row = threadIdx.x / kWarp * 16;

  fetch<kDim>(a, job, kv_head, job.first_key, tile.k[0][0], tile.v[0][0]);
  copies_commit();
  uint32_t queries[kDim / 16][4];
  load_queries<kDim>(a, job, q, head, queries);

  float out[kDim / 8][4] = {};
  float most[2] = {-INFINITY, -INFINITY};
  float total[2] = {};
  const int rows[2] = {job.first_position + warp_row + lane / 4,
                       job.first_position + warp_row + lane / 4 + 8};
  int stage = 0;
  for (int key = job.first_key; key < job.end_key; key += T::kKeys, stage ^= 1) {
    if (key + T::kKeys < job.end_key) {
      fetch<kDim>(a, job, kv_head, key + T::kKeys, tile.k[stage ^ 1][0], tile.v[stage ^ 1][0]);
    }
    copies_commit();
    copies_wait<1>();
    __syncthreads();

    float scores[T::kKeys / 8][4] = {};
#pragma unroll
    for (int s = 0; s < kDim / 16; ++s) {
#pragma unroll
      for (int n = 0; n < T::kKeys / 16; ++n) {
        uint32_t b[4];
        load_matrices(b,
                      &tile.k[stage][n * 16 + lane / 16 * 8 + lane % 8][s * 16 + lane / 8 % 2 * 8]);
        mma(scores[2 * n], queries[s], b[0], b[1]);
        mma(scores[2 * n + 1], queries[s], b[2], b[3]);
      }
    }

    float new_most[2] = {most[0], most[1]};
    const float scale = a.soft_cap > 0 ? a.scale : a.scale * kLog2e;
    const bool inside = key + T::kKeys <= job.first_position + warp_row + 1 && a.kv.window == 0;
#pragma unroll
    for (int n = 0; n < T::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float s = scores[n][i] * scale;
        if (a.soft_cap > 0) s = kLog2e * a.soft_cap * tanhf(s / a.soft_cap);
        const int p = key + n * 8 + 2 * (lane % 4) + i % 2;
        const int position = rows[i / 2];
        const bool seen =
            inside || (p <= position && (a.kv.window == 0 || p > position - a.kv.window));
        scores[n][i] = seen ? s : -INFINITY;
        new_most[i / 2] = fmaxf(new_most[i / 2], scores[n][i]);
      }
    }
    float shrink[2];
    float most_or_0[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      new_most[r] = fmaxf(new_most[r], __shfl_xor_sync(~0u, new_most[r], 1));
      new_most[r] = fmaxf(new_most[r], __shfl_xor_sync(~0u, new_most[r], 2));
      most_or_0[r] = new_most[r] == -INFINITY ? 0 : new_most[r];  // nothing seen yet
      shrink[r] = exp2f(most[r] - most_or_0[r]);
      most[r] = new_most[r];
      total[r] *= shrink[r];
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      out[n][0] *= shrink[0];
      out[n][1] *= shrink[0];
      out[n][2] *= shrink[1];
      out[n][3] *= shrink[1];
    }
#pragma unroll
    for (int n = 0; n < T::kKeys / 16; ++n) {
      float p[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          p[half][i] = exp2f(scores[2 * n + half][i] - most_or_0[i / 2]);
          total[i / 2] += p[half][i];
        }
      }
      const uint32_t weights[4] = {pack_halves(p[0][0], p[0][1]), pack_halves(p[0][2], p[0][3]),
                                   pack_halves(p[1][0], p[1][1]), pack_halves(p[1][2], p[1][3])};
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
        uint32_t b[4];
        load_transposed(
            b, &tile.v[stage][n * 16 + lane / 8 % 2 * 8 + lane % 8][d * 16 + lane / 16 * 8]);
        mma(out[2 * d], weights, b[0], b[1]);
        mma(out[2 * d + 1], weights, b[2], b[3]);
      }
    }
    __syncthreads();  // the next fetch writes where this tile was
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(~0u, total[r], 1);
    total[r] += __shfl_xor_sync(~0u, total[r], 2);
    const int row = warp_row + lane / 4 + 8 * r;
    if (row >= job.queries) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const int column = n * 8 + 2 * (lane % 4);
      if (column >= a.kv.v_dim) continue;
      const int64_t at = static_cast<int64_t>(head) * a.kv.v_dim + column;
      store(y, job.first_query + row, at, out[n][2 * r] / total[r]);
      store(y, job.first_query + row, at + 1, out[n][2 * r + 1] / total[r]);
    }
  }
}

template <int kDim>
void launch(const AttentionArgs& a, const Rows& q, const Rows& y, Stream stream) {
  static const bool raised = [] {
    cudaFuncSetAttribute(tile_kernel<kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         sizeof(Tile<kDim>));
    return true;
  }();
  (void)raised;
  const dim3 grid(static_cast<unsigned>((a.max_queries + kQueries - 1) / kQueries),
                  static_cast<unsigned>(a.heads), static_cast<unsigned>(a.num_sequences));
  tile_kernel<kDim><<<grid, kThreads, sizeof(Tile<kDim>), stream>>>(a, q, y);
}

}  // namespace

bool supports_tiles(const AttentionArgs& a) {
  return a.kv.is_half && a.kv.k_dim == a.kv.v_dim && a.kv.k_dim % 8 == 0 && a.kv.k_dim <= 256;
}

void attention_by_tile(const AttentionArgs& a, const Rows& q, const Rows& y, Stream stream) {
  if (q.rows == 0) return;
  if (a.kv.k_dim <= 64) return launch<64>(a, q, y, stream);
  if (a.kv.k_dim <= 128) return launch<128>(a, q, y, stream);
  launch<256>(a, q, y, stream);
}

}  // namespace tinyvllm::ops::cuda
