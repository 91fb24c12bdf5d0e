// Rotates q where it lies and k on its way into the cache, v beside it. A block per token: a thread
// has one pair of columns, whose sine and cosine serve every head.
#include "ops/cuda/kv_address.cuh"
#include "ops/cuda/launch.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kThreads = 256;

struct Turn {
  float cosine;
  float sine;
  __device__ float2 of(float a, float b) const {
    return {a * cosine - b * sine, a * sine + b * cosine};
  }
};

// The two columns of a head that turn together.
__device__ int2 columns_of(const RopeArgs& rope, int pair) {
  return rope.adjacent ? int2{2 * pair, 2 * pair + 1} : int2{pair, pair + rope.rotary_dim / 2};
}

// Where a token's row of the cache is.
struct Slot {
  int64_t row;  // of k and v
  int64_t block;
  int offset;
};

// K, turned, and V of one token as they are. A team of `pairs` threads has a head at a time.
template <class T>
__device__ void write_numbers(const RopeArgs& rope, const KvArgs& kv, const Turn& turn,
                              const Slot& slot, const Rows& k, const Rows& v) {
  const int pairs = rope.rotary_dim / 2;
  const int teams = kThreads / pairs;
  const int team = threadIdx.x / pairs;
  const int2 columns = columns_of(rope, threadIdx.x % pairs);
  for (int head = team; head < kv.kv_heads && team < teams; head += teams) {
    const int64_t at = static_cast<int64_t>(head) * kv.k_dim;
    T* to = k_at<T>(kv, slot.block, head, slot.offset);
    const float2 turned =
        turn.of(load(k, slot.row, at + columns.x), load(k, slot.row, at + columns.y));
    kv_store(to + columns.x, turned.x);
    kv_store(to + columns.y, turned.y);
  }
  const int rest = kv.k_dim - rope.rotary_dim;  // of K: not turned
  for (int i = threadIdx.x; i < kv.kv_heads * rest; i += kThreads) {
    const int head = i / rest;
    const int column = rope.rotary_dim + i % rest;
    kv_store(k_at<T>(kv, slot.block, head, slot.offset) + column,
             load(k, slot.row, static_cast<int64_t>(head) * kv.k_dim + column));
  }
  for (int i = threadIdx.x; i < kv.kv_heads * kv.v_dim; i += kThreads) {
    kv_store(v_at<T>(kv, slot.block, i / kv.v_dim, slot.offset) + i % kv.v_dim,
             load(v, slot.row, i));
  }
}

// One head's K or V as bytes, by a warp: the largest becomes ±127. Returns what they are multiplied
// with to have them back.
template <class Value>
__device__ float store_bytes(int width, Value value_of, int8_t* to) {
  constexpr int kMostEach = kMostBytesOfHead / kWarp;
  const int lane = threadIdx.x % kWarp;
  float values[kMostEach];
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kMostEach; ++i) {
    const int column = i * kWarp + lane;
    values[i] = column < width ? value_of(column) : 0.f;
    largest = fmaxf(largest, fabsf(values[i]));
  }
  largest = warp_max(largest);
  const float inverse = largest > 0 ? 127 / largest : 0.f;
#pragma unroll
  for (int i = 0; i < kMostEach; ++i) {
    const int column = i * kWarp + lane;
    if (column < width) to[column] = static_cast<int8_t>(__float2int_rn(values[i] * inverse));
  }
  return largest / 127;
}

// The same as bytes, whose scales need a whole head: a warp has a head's K or V at a time.
__device__ void write_bytes(const RopeArgs& rope, const KvArgs& kv, const Turn& turn,
                            const Slot& slot, const Rows& k, const Rows& v) {
  __shared__ Turn turns[RopeArgs::kMaxPairs];
  const int pairs = rope.rotary_dim / 2;
  if (threadIdx.x < pairs) turns[threadIdx.x] = turn;
  __syncthreads();
  for (int i = threadIdx.x / kWarp; i < 2 * kv.kv_heads; i += kThreads / kWarp) {
    const int head = i / 2;
    float scale;
    if (i % 2 == 0) {
      const int64_t at = static_cast<int64_t>(head) * kv.k_dim;
      const auto turned = [&](int column) {
        if (column >= rope.rotary_dim) return load(k, slot.row, at + column);
        const int pair = rope.adjacent ? column / 2 : column % pairs;
        const int2 columns = columns_of(rope, pair);
        const float2 both =
            turns[pair].of(load(k, slot.row, at + columns.x), load(k, slot.row, at + columns.y));
        return column == columns.x ? both.x : both.y;
      };
      scale = store_bytes(kv.k_dim, turned, k_at<int8_t>(kv, slot.block, head, slot.offset));
    } else {
      const int64_t at = static_cast<int64_t>(head) * kv.v_dim;
      const auto value = [&](int column) { return load(v, slot.row, at + column); };
      scale = store_bytes(kv.v_dim, value, v_at<int8_t>(kv, slot.block, head, slot.offset));
    }
    float* to = i % 2 == 0 ? k_scale_at(kv, slot.block, head, slot.offset)
                           : v_scale_at(kv, slot.block, head, slot.offset);
    if (threadIdx.x % kWarp == 0) *to = scale;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    rope_kernel(const __grid_constant__ RopeArgs rope, KvArgs kv, const int32_t* positions,
                const int32_t* slots, int heads, Rows q, Rows k, Rows v) {
  const int64_t row = blockIdx.x;
  const int pairs = rope.rotary_dim / 2;
  const int pair = threadIdx.x % pairs;
  const int2 columns = columns_of(rope, pair);
  Turn turn;
  sincosf(static_cast<float>(positions[row]) * rope.frequencies[pair], &turn.sine, &turn.cosine);
  turn.sine *= rope.magnitude;
  turn.cosine *= rope.magnitude;
  let_next_begin();
  wait_for_previous();

  const int teams = kThreads / pairs;
  const int team = threadIdx.x / pairs;
  for (int head = team; head < heads && team < teams; head += teams) {
    const int64_t at = static_cast<int64_t>(head) * rope.head_dim;
    const float2 turned = turn.of(load(q, row, at + columns.x), load(q, row, at + columns.y));
    store(q, row, at + columns.x, turned.x);
    store(q, row, at + columns.y, turned.y);
  }
  const Slot slot{row, slots[row] / kv.block_size, slots[row] % kv.block_size};
  if constexpr (sizeof(T) == 1) {
    write_bytes(rope, kv, turn, slot, k, v);
  } else {
    write_numbers<T>(rope, kv, turn, slot, k, v);
  }
}

}  // namespace

void rope_kv_write(const RopeArgs& rope, const KvArgs& kv, const int32_t* positions,
                   const int32_t* slots, const Rows& q, const Rows& k, const Rows& v,
                   Stream stream) {
  if (q.rows == 0) return;
  const int heads = static_cast<int>(q.cols) / rope.head_dim;
  const auto run = [&](auto kernel) {
    launch_behind(kernel, static_cast<unsigned>(q.rows), kThreads, 0, stream, rope, kv, positions,
                  slots, heads, q, k, v);
  };
  switch (kv.dtype) {
    case DType::kI8:
      return run(rope_kernel<int8_t>);
    case DType::kF16:
      return run(rope_kernel<__half>);
    default:
      return run(rope_kernel<float>);
  }
}

}  // namespace tinyvllm::ops::cuda
