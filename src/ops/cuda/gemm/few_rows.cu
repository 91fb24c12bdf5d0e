// Few rows of x: every weight is read once and multiplied with all of them. A warp per row of W,
// its first loads under way before x is even looked at; x is normalised by every block for itself,
// which costs less than a kernel of its own and a trip through memory.
//
// The order in which a row's products are added depends on nothing but its length.
#include "ops/cuda/gemm/row_stream.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostShared = 200 << 10;  // bytes of x that a block may stage

struct Args {
  Packed w;
  Packed up;  // with a gate
  const float* bias;
  Epilogue epilogue;
  NormArgs norm;
  Rows x;
  Rows y;
  int64_t padded;  // columns of a row of x in shared memory
};

template <Form kForm>
__device__ void stage(const Args& a, __half* xs) {
  const int width = static_cast<int>(a.x.cols);
  for (int64_t row = 0; row < a.x.rows; ++row) {
    float mean = 0;
    float scale = 1;
    if (a.norm.weight != nullptr) {
      if (a.norm.subtract_mean) {
        float sum = 0;
        for (int i = threadIdx.x; i < width; i += kThreads) sum += load(a.x, row, i);
        mean = block_sum(sum) / width;
      }
      float squares = 0;
      for (int i = threadIdx.x; i < width; i += kThreads) {
        const float v = load(a.x, row, i) - mean;
        squares += v * v;
      }
      scale = rsqrtf(block_sum(squares) / width + a.norm.eps);
    }
    __half* to = xs + row * a.padded;
    for (int i = threadIdx.x; i < a.w.stride; i += kThreads) {
      float v = 0;
      if (i < width) {
        v = load(a.x, row, i);
        if (a.norm.weight != nullptr) v = (v - mean) * scale * a.norm.weight[i];
        if (a.norm.bias != nullptr) v += a.norm.bias[i];
      }
      to[staged_at<kForm>(i)] = to_half(v);
    }
  }
  __syncthreads();
}

template <Form kForm, int kRows>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(Args a) {
  extern __shared__ uint4 shared[];
  auto* xs = reinterpret_cast<__half*>(shared);  // [kRows, padded]
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  // Warps past the end help to stage x, then have nothing to do.
  const bool here = row < a.w.out;
  RowStream<kForm, kRows> weights(a.w, here ? row : 0);
  stage<kForm>(a, xs);
  if (!here) return;

  const bool gated = a.epilogue == Epilogue::kSiluGate || a.epilogue == Epilogue::kGeluGate;
  float sums[kRows] = {};
  float ups[kRows] = {};
  weights.run(xs, a.padded, sums);
  if (gated) {
    RowStream<kForm, kRows> up(a.up, row);
    up.run(xs, a.padded, ups);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float v = warp_sum(sums[r]);
    const float u = gated ? warp_sum(ups[r]) : 0.f;
    if (lane != 0 || r >= a.x.rows) continue;
    if (a.bias != nullptr) v += a.bias[row];
    if (gated) {
      v = gate_of(a.epilogue, v) * (a.bias != nullptr ? u + a.bias[a.w.out + row] : u);
    } else if (a.epilogue == Epilogue::kAdd) {
      v += load(a.y, r, row);
    }
    store(a.y, r, row, v);
  }
}

template <Form kForm, int kRows>
void launch(const Args& a, Stream stream) {
  const auto grid = static_cast<unsigned>((a.w.out + kWarps - 1) / kWarps);
  const auto shared = static_cast<size_t>(a.padded * kRows) * sizeof(__half);
  static const bool raised = [] {
    cudaFuncSetAttribute(few_rows_kernel<kForm, kRows>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         kMostShared);
    return true;
  }();
  (void)raised;
  few_rows_kernel<kForm, kRows><<<grid, kThreads, shared, stream>>>(a);
}

template <Form kForm>
void launch_rows(const Args& a, Stream stream) {
  if (a.x.rows <= 1) return launch<kForm, 1>(a, stream);
  if (kForm == Form::kHalf && a.x.rows <= 4) return launch<Form::kHalf, 4>(a, stream);
  launch<kForm, kFewRows>(a, stream);
}

}  // namespace

bool few_rows_fit(int64_t rows, int64_t in) {
  const int64_t copies = rows <= 1 ? 1 : kFewRows;
  return rows <= kFewRows && copies * staged_columns(in + 8, Form::k8) * 2 <= kMostShared;
}

void few_rows(const Packed& w, const Packed* up, const float* bias, Epilogue epilogue,
              const NormArgs& norm, const Rows& x, const Rows& y, Stream stream) {
  if (x.rows == 0) return;
  Args a{w, up != nullptr ? *up : Packed{}, bias, epilogue, norm, x, y, 0};
  a.padded = staged_columns(w.stride, w.form);
  switch (w.form) {
    case Form::kHalf:
      return launch_rows<Form::kHalf>(a, stream);
    case Form::k8:
      return launch_rows<Form::k8>(a, stream);
    case Form::k4:
      return launch_rows<Form::k4>(a, stream);
    case Form::k5:
      return launch_rows<Form::k5>(a, stream);
    case Form::k6:
      return launch_rows<Form::k6>(a, stream);
  }
}

}  // namespace tinyvllm::ops::cuda
