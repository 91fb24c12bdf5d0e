#include "ops/moe.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops {

Status prepare_experts(Device& device, Experts& experts) {
  return device.kind() == DeviceKind::kCuda ? cuda::prepare_experts(device, experts) : Status();
}

void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y) {
  const auto count = static_cast<int64_t>(experts.gate_up.size());
  CHECK(router.out() == count && experts.down.size() == experts.gate_up.size())
      << "a router to " << router.out() << " of " << count << " experts";
  CHECK(params.used >= 1 && params.used <= count) << params.used << " of " << count << " experts";
  CHECK(x.cols == n.width && y.cols == x.cols && y.rows == x.rows)
      << "a mixture from [" << x.rows << ", " << x.cols << "] to [" << y.rows << ", " << y.cols
      << "]";
  if (ctx.device.kind() == DeviceKind::kCuda) {
    cuda::moe_add(ctx, n, router, experts, params, x, y);
  } else {
    cpu::moe_add(ctx, n, router, experts, params, x, y);
  }
}

}  // namespace tinyvllm::ops
