#include "ops/moe.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/linear_weights.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops {
namespace {

// All of it as one product, for a device that does it in one go. Which experts the tokens took is
// known there alone: no fewer than one token takes.
OpCall describe(const Linear& router, const Experts& experts, const MoeParams& params,
                const Tensor& x, const Tensor& y) {
  const Linear& gate_up = experts.gate_up.front();
  const Linear& down = experts.down.front();
  const int64_t out = params.used * (gate_up.out() + down.in());
  const size_t weights =
      static_cast<size_t>(params.used) * (gate_up.bytes() + down.bytes()) + router.bytes();
  return OpCall{.op = "moe_linears",
                .kernel = "linear",
                .dtype = gate_up.weights().dtype,
                .matmul = true,
                .rows = x.rows,
                .out = out,
                .in = x.cols,
                .bytes = static_cast<double>(weights) + bytes_of(x) + 2 * bytes_of(y),
                .flops = 2.0 * static_cast<double>(x.rows) * static_cast<double>(x.cols) *
                         static_cast<double>(out + router.out())};
}

}  // namespace

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
    const OpScope scope(ctx, [&] { return describe(router, experts, params, x, y); });
    cuda::moe_add(ctx, n, router, experts, params, x, y);
  } else {
    cpu::moe_add(ctx, n, router, experts, params, x, y);
  }
}

}  // namespace tinyvllm::ops
