#include "ops/norm.h"

#include "ops/cpu/ops.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops {
namespace {

Status check_vector(const char* what, const TensorView& view, int64_t width) {
  if (view.shape.elements() != width) {
    return error(what, ": expected ", width, " elements, found shape ", to_string(view.shape));
  }
  if (!reference::can_dequantize(view.dtype)) {
    return error(what, ": type ", dtype_name(view.dtype), " is not one this build reads");
  }
  return Status();
}

Result<Buffer> floats(Device& device, const TensorView& view, float offset) {
  const int64_t n = view.shape.elements();
  std::vector<float> values(static_cast<size_t>(n));
  reference::dequantize(view.dtype, view.data, n, values.data());
  for (float& value : values) value += offset;
  const size_t bytes = values.size() * sizeof(float);
  TRY_ASSIGN(Buffer buffer, device.allocate(bytes, "the weights of a norm"));
  TRY(device.upload(buffer.data(), values.data(), bytes));
  return buffer;
}

// What a norm of rows like x must do; `moved` are the bytes of rows that it reads and writes.
OpCall describe(const char* op, const Norm& norm, const Tensor& x, double moved) {
  const double elements = static_cast<double>(x.rows) * static_cast<double>(x.cols);
  return OpCall{.op = op,
                .kernel = "norm",
                .rows = x.rows,
                .out = x.cols,
                .in = x.cols,
                .bytes = moved + static_cast<double>(norm.weight.bytes() + norm.bias.bytes()),
                .flops = 4 * elements};
}

void check(const Tensor& x, const Tensor& y, int64_t width) {
  CHECK(x.cols == width && y.cols == width && x.rows == y.rows)
      << "norm of width " << width << " from [" << x.rows << ", " << x.cols << "] to [" << y.rows
      << ", " << y.cols << "]";
}

bool on_card(const ExecContext& ctx) { return ctx.device.kind() == DeviceKind::kCuda; }

}  // namespace

Result<Norm> make_norm(Device& device, NormKind kind, float eps, const TensorView& weight,
                       const TensorView* bias, float offset) {
  Norm norm;
  norm.kind = kind;
  norm.eps = eps;
  norm.width = weight.shape.elements();
  TRY(check_vector("weight of a norm", weight, norm.width));
  TRY_ASSIGN(norm.weight, floats(device, weight, offset));
  if (bias != nullptr) {
    TRY(check_vector("bias of a norm", *bias, norm.width));
    TRY_ASSIGN(norm.bias, floats(device, *bias, 0));
  }
  return norm;
}

void norm(ExecContext& ctx, const Norm& norm, const Tensor& x, const Tensor& y) {
  check(x, y, norm.width);
  const OpScope scope(
      ctx, [&] { return describe("norm", norm, x, bytes_of(x) + bytes_of(y)); }, &y);
  if (on_card(ctx)) {
    if (!ctx.dry_run) cuda::norm(ctx, norm, x, y);
  } else if (!ctx.dry_run) {
    cpu::norm(ctx, norm, x, y);
  }
}

void norm_add(ExecContext& ctx, const Norm& norm, const Tensor& y, const Tensor& x) {
  check(y, x, norm.width);
  const OpScope scope(
      ctx, [&] { return describe("norm_add", norm, x, bytes_of(y) + 2 * bytes_of(x)); }, &x);
  if (on_card(ctx)) {
    if (!ctx.dry_run) cuda::norm_add(ctx, norm, y, x);
  } else {
    cpu::norm_add(ctx, norm, y, x);
  }
}

void head_norm(ExecContext& ctx, const Norm& norm, const Tensor& x) {
  CHECK(norm.width > 0 && x.cols % norm.width == 0)
      << x.cols << " columns in heads of " << norm.width;
  const OpScope scope(ctx, [&] { return describe("head_norm", norm, x, 2 * bytes_of(x)); });
  if (on_card(ctx)) {
    if (!ctx.dry_run) cuda::head_norm(ctx, norm, x);
  } else if (!ctx.dry_run) {
    cpu::head_norm(ctx, norm, x);
  }
}

}  // namespace tinyvllm::ops
