#include "ops/linear.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/linear_weights.h"
#include "ops/op_scope.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops {
namespace {

Status check_parts(const LinearParts& parts) {
  if (parts.weights.empty()) return error("linear: no weights");
  const TensorView& first = parts.weights.front();
  for (const TensorView& w : parts.weights) {
    if (w.shape.rank != 2 || w.shape[1] != first.shape[1] || w.shape[0] <= 0 || w.shape[1] <= 0) {
      return error("linear: expected [out, ", first.shape.row_elements(), "], found ",
                   to_string(w.shape));
    }
    if (w.shape[1] % dtype_info(w.dtype).block_elements != 0) {
      return error("linear: rows of ", w.shape[1], " are not whole blocks of ",
                   dtype_name(w.dtype));
    }
  }
  if (parts.biases.empty()) return Status();
  if (parts.biases.size() != parts.weights.size()) {
    return error("linear: ", parts.weights.size(), " weights, ", parts.biases.size(), " biases");
  }
  for (size_t i = 0; i < parts.biases.size(); ++i) {
    const TensorView& bias = parts.biases[i];
    if (bias.shape.elements() != parts.weights[i].shape[0] ||
        !reference::can_dequantize(bias.dtype)) {
      return error("linear: expected ", parts.weights[i].shape[0], " biases, found ",
                   dtype_name(bias.dtype), " ", to_string(bias.shape));
    }
  }
  return Status();
}

void run(ExecContext& ctx, const char* op, const Norm* norm, const Linear& w, Epilogue epilogue,
         const Tensor& x, const Tensor& y) {
  CHECK(x.cols == w.in() && x.rows == y.rows && y.cols * (is_gate(epilogue) ? 2 : 1) == w.out())
      << "linear [" << w.out() << ", " << w.in() << "] from [" << x.rows << ", " << x.cols
      << "] to [" << y.rows << ", " << y.cols << "]";
  CHECK(norm == nullptr || norm->width == w.in()) << "norm of " << norm->width << " before linear";
  const bool on_card = ctx.device.kind() == DeviceKind::kCuda;
  const OpScope scope(
      ctx,
      [&] {
        const double written = bytes_of(y) * (epilogue == Epilogue::kAdd ? 2 : 1);
        return OpCall{.op = op,
                      .kernel = "linear",
                      .reason = on_card ? cuda::linear_reason(ctx, w, x) : w.weights().reason,
                      .dtype = w.weights().dtype,
                      .matmul = true,
                      .rows = x.rows,
                      .out = w.out(),
                      .in = w.in(),
                      .bytes = static_cast<double>(w.bytes()) + bytes_of(x) + written,
                      .flops = 2.0 * static_cast<double>(x.rows) * static_cast<double>(w.out()) *
                               static_cast<double>(w.in())};
      },
      &y);
  if (on_card) {
    cuda::linear(ctx, norm, w, epilogue, x, y);
  } else {
    cpu::linear(ctx, norm, w, epilogue, x, y);
  }
}

Epilogue epilogue_of(Gate gate) {
  return gate == Gate::kSilu ? Epilogue::kSiluGate : Epilogue::kGeluGate;
}

}  // namespace

Linear::Linear() = default;
Linear::Linear(std::unique_ptr<Weights> weights) : weights_(std::move(weights)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

int64_t Linear::in() const { return weights_->in; }
int64_t Linear::out() const { return weights_->out; }
size_t Linear::bytes() const { return weights_->bytes; }

void load_weight_kernels(const Device& device) {
  if (device.kind() == DeviceKind::kCuda) cuda::load_weight_kernels();
}

Status expect_weights(Device& device, std::span<const TensorView> weights) {
  if (device.kind() == DeviceKind::kCuda) return cuda::expect_weights(device, weights);
  return Status();
}

Result<Linear> make_linear(Device& device, ThreadPool& pool, const LinearParts& parts) {
  TRY(check_parts(parts));
  if (device.kind() == DeviceKind::kCuda) return cuda::make_linear(device, parts);
  return cpu::make_linear(device, pool, parts);
}

void linear(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y) {
  run(ctx, "linear", nullptr, w, Epilogue::kStore, x, y);
}
void linear_add(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y) {
  run(ctx, "linear_add", nullptr, w, Epilogue::kAdd, x, y);
}
void norm_linear(ExecContext& ctx, const Norm& n, const Linear& w, const Tensor& x,
                 const Tensor& y) {
  run(ctx, "norm_linear", &n, w, Epilogue::kStore, x, y);
}
void norm_linear_gated(ExecContext& ctx, const Norm& n, const Linear& w, Gate gate, const Tensor& x,
                       const Tensor& y) {
  run(ctx, "norm_linear_gated", &n, w, epilogue_of(gate), x, y);
}
void linear_gated(ExecContext& ctx, const Linear& w, Gate gate, const Tensor& x, const Tensor& y) {
  run(ctx, "linear_gated", nullptr, w, epilogue_of(gate), x, y);
}

}  // namespace tinyvllm::ops
