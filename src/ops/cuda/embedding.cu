#include "ops/cuda/launch.cuh"
#include "ops/cuda/unpack.cuh"

namespace tinyvllm::ops::cuda {
namespace {

template <Form kForm>
__global__ void embed_kernel(Packed table, const int32_t* ids, const int32_t* previous, float scale,
                             Rows x) {
  const int64_t row = blockIdx.x;
  let_next_begin();
  wait_for_previous();
  // A row that failed to sample has no token; what follows from it is void.
  const int64_t id = ids[row] >= 0 ? ids[row] : max(0, previous[~ids[row]]);
  if constexpr (kForm == Form::kHalf) {
    const auto* from = static_cast<const __half*>(table.low) + id * table.stride;
    for (int i = threadIdx.x; i < x.cols; i += blockDim.x) {
      store(x, row, i, scale * __half2float(from[i]));
    }
  } else {
    for (int span = threadIdx.x; span < table.in / kSpan; span += blockDim.x) {
      Codes<kForm> codes;
      codes.load(table, id, span);
#pragma unroll
      for (int i = 0; i < kSpan; ++i) store(x, row, span * kSpan + i, scale * codes.value(i));
    }
  }
}

__global__ void gather_kernel(const int32_t* rows, Rows x, Rows y) {
  let_next_begin();
  wait_for_previous();
  const int64_t to = blockIdx.x;
  const int64_t from = rows[to];
  for (int i = threadIdx.x; i < x.cols; i += blockDim.x) store(y, to, i, load(x, from, i));
}

}  // namespace

void embed(const Packed& table, const int32_t* ids, const int32_t* previous, float scale,
           const Rows& x, Stream stream) {
  if (x.rows == 0) return;
  const auto run = [&](auto kernel) {
    launch_behind(kernel, static_cast<unsigned>(x.rows), 256, 0, stream, table, ids, previous,
                  scale, x);
  };
  switch (table.form) {
    case Form::kHalf:
      return run(embed_kernel<Form::kHalf>);
    case Form::k8:
      return run(embed_kernel<Form::k8>);
    case Form::k4:
      return run(embed_kernel<Form::k4>);
    case Form::k5:
      return run(embed_kernel<Form::k5>);
    case Form::k6:
      return run(embed_kernel<Form::k6>);
  }
}

void gather_rows(const int32_t* rows, const Rows& x, const Rows& y, Stream stream) {
  if (y.rows == 0) return;
  launch_behind(gather_kernel, static_cast<unsigned>(y.rows), 256, 0, stream, rows, x, y);
}

}  // namespace tinyvllm::ops::cuda
