// Few rows of x: every weight is read once and multiplied with all of them on the tensor cores. A
// block has 16 rows of W, its warps share out the columns, and every warp's first loads are under
// way before x is even there. A single x is normalised by every block for itself, which costs less
// than a kernel of its own and a trip through memory; more of them come normalised.
//
// Which column a tensor core takes for which is its own business as long as W and x agree: a lane
// reads 8 columns in a row of each, and feeds them as two pairs to each of two products.
//
// The order in which a row's products are added depends on nothing but its length.
#include <algorithm>

#include "ops/cuda/attention/mma.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/unpack.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTileRows = 16;  // of W

// Bytes of x that a block may stage: what a card has, less the kernel's own.
int64_t most_staged() {
  constexpr int64_t kWorthIt = 200 << 10;
  constexpr int64_t kOwn = 8 << 10;
  return std::min(kWorthIt, most_shared() - kOwn);
}

struct Args {
  Packed w;
  Packed up;  // with a gate
  const float* bias;
  Epilogue epilogue;
  NormArgs norm;
  Rows x;
  Rows y;
  int64_t padded;  // columns of a row of x in shared memory
  bool by4;        // rows of x can be read four columns at a time
  bool halves8;    // rows of x are copied as they are, eight columns at a time
};

__device__ __host__ constexpr bool is_gated(Epilogue e) {
  return e == Epilogue::kSiluGate || e == Epilogue::kGeluGate;
}

// Columns of a row of x in shared memory, the rows half the banks apart.
int64_t staged_columns(int64_t stride, Form form) {
  const int64_t columns = form == Form::kHalf ? stride : stride + stride / 4;
  return (columns + 31) / 64 * 64 + 32;
}

__device__ inline float4 load4(const Rows& x, int64_t row, int i) {
  const int64_t at = row * x.stride + i;
  if (!x.is_half) return *reinterpret_cast<const float4*>(static_cast<const float*>(x.data) + at);
  const uint2 four = *reinterpret_cast<const uint2*>(static_cast<const __half*>(x.data) + at);
  const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&four.x));
  const float2 b = __half22float2(*reinterpret_cast<const __half2*>(&four.y));
  return {a.x, a.y, b.x, b.y};
}

// Four columns a thread at a time, where rows are aligned for that (`by4`), or else one.
template <Form kForm, bool kBy4>
__device__ void stage_row(const Args& a, int64_t row, __half* to) {
  constexpr int kStep = kBy4 ? 4 : 1;
  const int width = static_cast<int>(a.x.cols);
  const auto values = [&](int i, float(&v)[kStep]) {
    if constexpr (kBy4) {
      const float4 four = load4(a.x, row, i);
      v[0] = four.x;
      v[1] = four.y;
      v[2] = four.z;
      v[3] = four.w;
    } else {
      v[0] = load(a.x, row, i);
    }
  };
  float mean = 0;
  float scale = 1;
  if (a.norm.weight != nullptr) {
    if (a.norm.subtract_mean) {
      float sum = 0;
      for (int i = threadIdx.x * kStep; i < width; i += kThreads * kStep) {
        float v[kStep];
        values(i, v);
        for (int e = 0; e < kStep; ++e) sum += v[e];
      }
      mean = block_sum(sum) / width;
    }
    float squares = 0;
    for (int i = threadIdx.x * kStep; i < width; i += kThreads * kStep) {
      float v[kStep];
      values(i, v);
      for (int e = 0; e < kStep; ++e) squares += (v[e] - mean) * (v[e] - mean);
    }
    scale = rsqrtf(block_sum(squares) / width + a.norm.eps);
  }
  for (int i = threadIdx.x * kStep; i < a.w.stride; i += kThreads * kStep) {
    float v[kStep] = {};
    if (i < width) values(i, v);
    __half halves[kStep];
    for (int e = 0; e < kStep; ++e) {
      if (i + e < width && a.norm.weight != nullptr) {
        v[e] = (v[e] - mean) * scale * a.norm.weight[i + e];
        if (a.norm.bias != nullptr) v[e] += a.norm.bias[i + e];
      }
      halves[e] = to_half(v[e]);
    }
    __half* at = to + staged_at<kForm>(i);
    if constexpr (kBy4) {
      *reinterpret_cast<uint2*>(at) = *reinterpret_cast<const uint2*>(halves);
    } else {
      *at = halves[0];
    }
  }
}

// Rows that are halves already, eight columns a thread.
template <Form kForm>
__device__ void copy_rows(const Args& a, __half* xs) {
  const int eights = static_cast<int>(a.w.stride / 8);
  for (int at = threadIdx.x; at < a.x.rows * eights; at += kThreads) {
    const int row = at / eights;
    const int i = at % eights * 8;
    const auto* from = static_cast<const __half*>(a.x.data) + row * a.x.stride + i;
    *reinterpret_cast<uint4*>(xs + row * a.padded + staged_at<kForm>(i)) =
        i < a.x.cols ? *reinterpret_cast<const uint4*>(from) : uint4{};
  }
}

template <Form kForm>
__device__ void stage(const Args& a, __half* xs) {
  if (a.halves8) {
    copy_rows<kForm>(a, xs);
  } else {
    for (int64_t row = 0; row < a.x.rows; ++row) {
      __half* to = xs + row * a.padded;
      a.by4 ? stage_row<kForm, true>(a, row, to) : stage_row<kForm, false>(a, row, to);
    }
  }
  __syncthreads();
}

// 8 columns of rows g and g + 8 of W times those of 8 rows of x.
__device__ inline void multiply8(float (&c)[4], const uint4& low, const uint4& high,
                                 const uint4& x) {
  const uint32_t first[4] = {low.x, high.x, low.y, high.y};
  const uint32_t second[4] = {low.z, high.z, low.w, high.w};
  mma(c, first, x.x, x.y);
  mma(c, second, x.z, x.w);
}

// A lane's share of one round of columns: of rows g and g + 8.
template <Form kForm>
struct Piece {
  static constexpr int kColumns = 4 * kSpan;  // of a warp's round
  static constexpr int kAhead = 2;            // rounds under way
  Codes<kForm> codes[2];

  __device__ void load(const Packed& w, int64_t low, int64_t high, int64_t column) {
    const int64_t span = (column + threadIdx.x % 4 * kSpan) / kSpan;
    if (span * kSpan >= w.stride) return;
    codes[0].load(w, low, span);
    codes[1].load(w, high, span);
  }
  __device__ void multiply(const Packed& w, const __half* xs, int64_t column, bool there,
                           float (&c)[4]) const {
    const int64_t at = column + threadIdx.x % 4 * kSpan;
    const bool inside = at < w.stride;
    const auto* x = reinterpret_cast<const uint4*>(xs + staged_at<kForm>(at));
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const uint4 eight = there && inside ? x[q] : uint4{};
      uint4 rows[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const auto pair = [&](int i) {
          return inside ? pack_halves(codes[r].value(8 * q + i), codes[r].value(8 * q + i + 1))
                        : 0u;
        };
        rows[r] = {pair(0), pair(2), pair(4), pair(6)};
      }
      multiply8(c, rows[0], rows[1], eight);
    }
  }
};

template <>
struct Piece<Form::kHalf> {
  static constexpr int kColumns = 64;
  static constexpr int kAhead = 4;
  uint4 weights[2][2];  // [columns 0…31 or 32…63][row]

  __device__ void load(const Packed& w, int64_t low, int64_t high, int64_t column) {
    const auto* data = static_cast<const __half*>(w.low);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int64_t at = column + 32 * part + threadIdx.x % 4 * 8;
      const bool inside = at < w.stride;
      const auto* a = reinterpret_cast<const uint4*>(data + low * w.stride + at);
      const auto* b = reinterpret_cast<const uint4*>(data + high * w.stride + at);
      weights[part][0] = inside ? __ldcs(a) : uint4{};
      weights[part][1] = inside ? __ldcs(b) : uint4{};
    }
  }
  __device__ void multiply(const Packed& w, const __half* xs, int64_t column, bool there,
                           float (&c)[4]) const {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int64_t at = column + 32 * part + threadIdx.x % 4 * 8;
      const uint4 eight =
          there && at < w.stride ? *reinterpret_cast<const uint4*>(xs + at) : uint4{};
      multiply8(c, weights[part][0], weights[part][1], eight);
    }
  }
};

template <Form kForm>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(const __grid_constant__ Args a) {
  extern __shared__ uint4 shared[];
  auto* xs = reinterpret_cast<__half*>(shared);  // [x.rows, padded]
  __shared__ float sums[kWarps][kFewRows][kTileRows];
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  // With a gate half of the warps have the second matrix.
  const bool gated = is_gated(a.epilogue);
  const int shares = gated ? kWarps / 2 : kWarps;
  const Packed& w = gated && warp >= shares ? a.up : a.w;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kTileRows);
  // Rows past the end repeat the last one; what they yield is not stored.
  const int64_t low = min(first + lane / 4, w.out - 1);
  const int64_t high = min(first + lane / 4 + 8, w.out - 1);

  using P = Piece<kForm>;
  const int64_t rounds = (w.stride + P::kColumns - 1) / P::kColumns;
  const int64_t begin = warp % shares;
  P pieces[P::kAhead];
#pragma unroll
  for (int i = 0; i < P::kAhead; ++i) {
    if (begin + i * shares < rounds) {
      pieces[i].load(w, low, high, (begin + i * shares) * P::kColumns);
    }
  }
  let_next_begin();
  wait_for_previous();
  stage<kForm>(a, xs);

  float c[4] = {};
  const bool there = lane / 4 < a.x.rows;
  const __half* row = xs + (there ? lane / 4 : 0) * a.padded;
  for (int64_t round = begin; round < rounds; round += P::kAhead * shares) {
#pragma unroll
    for (int i = 0; i < P::kAhead; ++i) {
      const int64_t at = round + i * shares;
      if (at >= rounds) break;
      pieces[i].multiply(w, row, at * P::kColumns, there, c);
      const int64_t next = at + P::kAhead * shares;
      if (next < rounds) pieces[i].load(w, low, high, next * P::kColumns);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[warp][2 * (lane % 4) + i % 2][lane / 4 + i / 2 * 8] = c[i];
  __syncthreads();

  const int token = threadIdx.x / kTileRows;
  const int64_t out = first + threadIdx.x % kTileRows;
  if (token >= a.x.rows || out >= a.w.out) return;
  float v = 0;
  float u = 0;
  for (int i = 0; i < shares; ++i) v += sums[i][token][threadIdx.x % kTileRows];
  if (a.bias != nullptr) v += a.bias[out];
  if (gated) {
    for (int i = 0; i < shares; ++i) u += sums[shares + i][token][threadIdx.x % kTileRows];
    if (a.bias != nullptr) u += a.bias[a.w.out + out];
    v = gate_of(a.epilogue, v) * u;
  } else if (a.epilogue == Epilogue::kAdd) {
    v += load(a.y, token, out);
  }
  store(a.y, token, out, v);
}

template <Form kForm>
void launch(const Args& a, Stream stream) {
  const auto grid = static_cast<unsigned>((a.w.out + kTileRows - 1) / kTileRows);
  const auto shared = static_cast<size_t>(a.padded * a.x.rows) * sizeof(__half);
  static const bool raised = [] {
    allow_shared(few_rows_kernel<kForm>, most_staged());
    return true;
  }();
  (void)raised;
  launch_behind(few_rows_kernel<kForm>, grid, kThreads, shared, stream, a);
}

}  // namespace

bool few_rows_fit(int64_t rows, int64_t in) {
  return rows <= kFewRows && rows * staged_columns(in + 8, Form::k8) * 2 <= most_staged();
}

void few_rows(const Packed& w, const Packed* up, const float* bias, Epilogue epilogue,
              const NormArgs& norm, const Rows& x, const Rows& y, Stream stream) {
  if (x.rows == 0) return;
  Args a{w, up != nullptr ? *up : Packed{}, bias, epilogue, norm, x, y, 0, false, false};
  a.padded = staged_columns(w.stride, w.form);
  a.halves8 = norm.weight == nullptr && x.is_half && x.cols % 8 == 0 && x.stride % 8 == 0 &&
              reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  a.by4 = x.cols % 4 == 0 && x.stride % 4 == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  switch (w.form) {
    case Form::kHalf:
      return launch<Form::kHalf>(a, stream);
    case Form::k8:
      return launch<Form::k8>(a, stream);
    case Form::k4:
      return launch<Form::k4>(a, stream);
    case Form::k5:
      return launch<Form::k5>(a, stream);
    case Form::k6:
      return launch<Form::k6>(a, stream);
  }
}

}  // namespace tinyvllm::ops::cuda
