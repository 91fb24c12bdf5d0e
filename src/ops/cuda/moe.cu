// A mixture on the card: the router's choice never comes to the host, so every block looks up for
// itself which expert's rows it is about. A warp per row of an expert, for one token.
#include "ops/cuda/gemm/row_stream.cuh"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

// The `used` likeliest experts of each token, likeliest first, the lower number first among equals.
__global__ void route_kernel(Rows logits, int used, bool normalize, int32_t* experts,
                             float* weights) {
  const int64_t token = blockIdx.x;
  const int lane = threadIdx.x;
  const int count = static_cast<int>(logits.cols);
  float most = -INFINITY;
  for (int e = lane; e < count; e += kWarp) most = fmaxf(most, load(logits, token, e));
  most = warp_max(most);
  float sum = 0;
  for (int e = lane; e < count; e += kWarp) sum += expf(load(logits, token, e) - most);
  sum = warp_sum(sum);
  float last_value = INFINITY;
  int last = -1;
  float chosen = 0;
  for (int rank = 0; rank < used; ++rank) {
    float best = -INFINITY;
    int id = count;
    for (int e = lane; e < count; e += kWarp) {
      const float v = load(logits, token, e);
      const bool after = v < last_value || (v == last_value && e > last);
      if (after && (v > best || (v == best && e < id))) {
        best = v;
        id = e;
      }
    }
    for (int i = kWarp / 2; i > 0; i /= 2) {
      const float v = __shfl_xor_sync(~0u, best, i);
      const int e = __shfl_xor_sync(~0u, id, i);
      if (v > best || (v == best && e < id)) {
        best = v;
        id = e;
      }
    }
    last_value = best;
    last = id;
    const float weight = expf(best - most) / sum;
    chosen += weight;
    if (lane == 0) {
      experts[token * used + rank] = min(id, count - 1);
      weights[token * used + rank] = weight;
    }
  }
  if (!normalize) return;
  __syncwarp();
  for (int rank = lane; rank < used; rank += kWarp) weights[token * used + rank] /= chosen;
}

template <Form kForm>
__device__ void stage(const Rows& x, int64_t row, int64_t stride, __half* xs) {
  for (int i = threadIdx.x; i < stride; i += kThreads) {
    xs[staged_at<kForm>(i)] = to_half(i < x.cols ? load(x, row, i) : 0.f);
  }
}

// y[token · used + slot] = gate(G x) · U x of that slot's expert.
template <Form kForm>
__global__ void __launch_bounds__(kThreads)
    expert_up_kernel(const Packed* gates, const Packed* ups, const int32_t* experts, int used,
                     Epilogue gate, Rows x, Rows y) {
  extern __shared__ uint4 shared[];
  auto* xs = reinterpret_cast<__half*>(shared);
  const int64_t slot = blockIdx.x;
  const Packed g = gates[experts[slot]];
  const Packed u = ups[experts[slot]];
  const int64_t row = blockIdx.y * static_cast<int64_t>(kWarps) + threadIdx.x / kWarp;
  stage<kForm>(x, slot / used, g.stride, xs);
  __syncthreads();
  if (row >= g.out) return;
  float sums[2] = {};
  RowStream<kForm>(g, row).run(xs, sums[0]);
  RowStream<kForm>(u, row).run(xs, sums[1]);
  const float value = gate_of(gate, warp_sum(sums[0])) * warp_sum(sums[1]);
  if (threadIdx.x % kWarp == 0) store(y, slot, row, value);
}

// y[token] += Σ weight · D x[token · used + slot], in the router's order.
template <Form kForm>
__global__ void __launch_bounds__(kThreads)
    expert_down_kernel(const Packed* downs, const int32_t* experts, const float* weights, int used,
                       Rows x, Rows y) {
  extern __shared__ uint4 shared[];
  auto* xs = reinterpret_cast<__half*>(shared);
  const int64_t token = blockIdx.x;
  const int64_t row = blockIdx.y * static_cast<int64_t>(kWarps) + threadIdx.x / kWarp;
  float total = 0;
  for (int slot = 0; slot < used; ++slot) {
    const int64_t at = token * used + slot;
    const Packed d = downs[experts[at]];
    __syncthreads();  // xs may still be read
    stage<kForm>(x, at, d.stride, xs);
    __syncthreads();
    if (row >= d.out) continue;
    float sum = 0;
    RowStream<kForm>(d, row).run(xs, sum);
    total = fmaf(weights[at], warp_sum(sum), total);
  }
  if (row < y.cols && threadIdx.x % kWarp == 0) store(y, token, row, load(y, token, row) + total);
}

// Rows first: there are more than the 65535 that a grid's other dimensions have.
dim3 grid_for(int64_t out, int64_t rows) {
  return {static_cast<unsigned>(rows), static_cast<unsigned>((out + kWarps - 1) / kWarps)};
}
size_t shared_for(int64_t in) {
  return static_cast<size_t>(staged_columns(in + 8, Form::k8)) * sizeof(__half);
}

template <Form kForm>
void run_up(const ExpertArgs& a, const Rows& x, const Rows& y, Stream stream) {
  expert_up_kernel<kForm><<<grid_for(y.cols, y.rows), kThreads, shared_for(x.cols), stream>>>(
      a.gates, a.ups, a.experts, a.used, a.gate, x, y);
}

template <Form kForm>
void run_down(const ExpertArgs& a, const Rows& x, const Rows& y, Stream stream) {
  expert_down_kernel<kForm><<<grid_for(y.cols, y.rows), kThreads, shared_for(x.cols), stream>>>(
      a.downs, a.experts, a.weights, a.used, x, y);
}

}  // namespace

void route(const Rows& logits, int used, bool normalize, int32_t* experts, float* weights,
           Stream stream) {
  if (logits.rows == 0) return;
  route_kernel<<<static_cast<unsigned>(logits.rows), kWarp, 0, stream>>>(logits, used, normalize,
                                                                         experts, weights);
}

void run_experts(const ExpertArgs& a, const Rows& x, const Rows& hidden, const Rows& y,
                 Stream stream) {
  if (x.rows == 0) return;
  switch (a.up_form) {
    case Form::kHalf:
      run_up<Form::kHalf>(a, x, hidden, stream);
      break;
    case Form::k8:
      run_up<Form::k8>(a, x, hidden, stream);
      break;
    case Form::k4:
      run_up<Form::k4>(a, x, hidden, stream);
      break;
    case Form::k5:
      run_up<Form::k5>(a, x, hidden, stream);
      break;
    case Form::k6:
      run_up<Form::k6>(a, x, hidden, stream);
      break;
  }
  switch (a.down_form) {
    case Form::kHalf:
      return run_down<Form::kHalf>(a, hidden, y, stream);
    case Form::k8:
      return run_down<Form::k8>(a, hidden, y, stream);
    case Form::k4:
      return run_down<Form::k4>(a, hidden, y, stream);
    case Form::k5:
      return run_down<Form::k5>(a, hidden, y, stream);
    case Form::k6:
      return run_down<Form::k6>(a, hidden, y, stream);
  }
}

}  // namespace tinyvllm::ops::cuda
