// What the host's side of the ops shares: tensors as kernels take them.
#pragma once

#include "device/cuda/cuda_device.h"
#include "device/exec_context.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/weights.h"
#include "ops/norm.h"

namespace tinyvllm::ops::cuda {

inline CudaDevice& card(const ExecContext& ctx) { return static_cast<CudaDevice&>(ctx.device); }
inline Stream stream_of(const ExecContext& ctx) { return card(ctx).stream(); }

inline Rows rows(const Tensor& t) {
  CHECK(t.dtype == DType::kF32 || t.dtype == DType::kF16)
      << "activations of " << dtype_name(t.dtype);
  return {t.data, t.dtype == DType::kF16, t.rows, t.cols, t.stride};
}

inline NormArgs norm_args(const Norm* norm) {
  if (norm == nullptr) return {};
  return {static_cast<const float*>(norm->weight.data()),
          static_cast<const float*>(norm->bias.data()), norm->eps, norm->kind == NormKind::kLayer};
}

}  // namespace tinyvllm::ops::cuda
