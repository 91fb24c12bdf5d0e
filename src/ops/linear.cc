#include "ops/linear.h"

#include "ops/cpu/ops.h"
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

void run(ExecContext& ctx, const char* op, const Norm* norm, const Linear& w,
         cpu::Epilogue epilogue, const Tensor& x, const Tensor& y) {
  const bool gated = epilogue == cpu::Epilogue::kSiluGate || epilogue == cpu::Epilogue::kGeluGate;
  CHECK(ctx.device.kind() == DeviceKind::kCpu) << "linear on " << ctx.device.name();
  CHECK(x.dtype == DType::kF32 && y.dtype == DType::kF32) << "linear of float activations";
  CHECK(x.cols == w.in() && x.rows == y.rows && y.cols * (gated ? 2 : 1) == w.out())
      << "linear [" << w.out() << ", " << w.in() << "] from [" << x.rows << ", " << x.cols
      << "] to [" << y.rows << ", " << y.cols << "]";
  CHECK(norm == nullptr || norm->width == w.in()) << "norm of " << norm->width << " before linear";
  const OpScope scope(
      ctx,
      [&] {
        const double written = bytes_of(y) * (epilogue == cpu::Epilogue::kAdd ? 2 : 1);
        return OpCall{.op = op,
                      .dtype = w.weights().dtype,
                      .rows = x.rows,
                      .out = w.out(),
                      .in = w.in(),
                      .bytes = static_cast<double>(w.bytes()) + bytes_of(x) + written,
                      .flops = 2.0 * static_cast<double>(x.rows) * static_cast<double>(w.out()) *
                               static_cast<double>(w.in())};
      },
      &y);
  cpu::linear(ctx, norm, w, epilogue, x, y);
}

cpu::Epilogue epilogue_of(Gate gate) {
  return gate == Gate::kSilu ? cpu::Epilogue::kSiluGate : cpu::Epilogue::kGeluGate;
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

Result<Linear> make_linear(Device& device, ThreadPool& pool, const LinearParts& parts) {
  if (device.kind() != DeviceKind::kCpu) return error("linear: no code for ", device.name());
  TRY(check_parts(parts));
  return cpu::make_linear(device, pool, parts);
}

void linear(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y) {
  run(ctx, "linear", nullptr, w, cpu::Epilogue::kStore, x, y);
}
void linear_add(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y) {
  run(ctx, "linear_add", nullptr, w, cpu::Epilogue::kAdd, x, y);
}
void norm_linear(ExecContext& ctx, const Norm& n, const Linear& w, const Tensor& x,
                 const Tensor& y) {
  run(ctx, "norm_linear", &n, w, cpu::Epilogue::kStore, x, y);
}
void norm_linear_gated(ExecContext& ctx, const Norm& n, const Linear& w, Gate gate, const Tensor& x,
                       const Tensor& y) {
  run(ctx, "norm_linear_gated", &n, w, epilogue_of(gate), x, y);
}
void linear_gated(ExecContext& ctx, const Linear& w, Gate gate, const Tensor& x, const Tensor& y) {
  run(ctx, "linear_gated", nullptr, w, epilogue_of(gate), x, y);
}

}  // namespace tinyvllm::ops
