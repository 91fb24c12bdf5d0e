// Which way a product takes. Few rows: one kernel of ours reads every weight once and does norm,
// bias, gate and sum on the way. Many: x is normalised into halves, quantized weights become halves
// piece by piece, and cuBLASLt multiplies; with --deterministic our fixed tile does, for any number
// of rows.
#include "device/cuda/cublaslt.h"
#include "ops/cuda/host.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops::cuda {
namespace {

// Halves that quantized weights become at a time.
constexpr int64_t kUnpackedBytes = int64_t{64} << 20;

void multiply(ExecContext& ctx, const Packed& w, const Rows& x, const Rows& y, bool add) {
  const bool aligned =
      w.in % 8 == 0 && y.stride % 8 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0;
  if (card(ctx).deterministic() || !aligned) {
    tile_gemm(w, x, y, add, stream_of(ctx));
    return;
  }
  const Status done = card(ctx).judged(card(ctx).cublaslt().multiply({.w = w.low,
                                                                      .x = x.data,
                                                                      .y = y.data,
                                                                      .rows = x.rows,
                                                                      .out = w.out,
                                                                      .in = w.in,
                                                                      .w_stride = w.stride,
                                                                      .x_stride = x.stride,
                                                                      .y_stride = y.stride,
                                                                      .y_is_half = y.is_half,
                                                                      .add = add},
                                                                     stream_of(ctx)));
  if (!done.ok()) card(ctx).fail(done.message());
}

Rows columns(const Rows& y, int64_t begin, int64_t count) {
  Rows part = y;
  if (y.data != nullptr) part.data = static_cast<char*>(y.data) + begin * (y.is_half ? 2 : 4);
  part.cols = count;
  return part;
}

// y (+)= W x for halves of x: every part, quantized ones in pieces of halves.
void multiply_parts(ExecContext& ctx, const CudaLinear& w, const Rows& x, const Rows& y, bool add) {
  int64_t column = 0;
  for (const Matrix& part : w.parts) {
    const Packed& p = part.packed;
    if (p.form == Form::kHalf) {
      if (!ctx.dry_run) multiply(ctx, p, x, columns(y, column, p.out), add);
    } else {
      const int64_t piece =
          std::min(p.out, std::max<int64_t>(8, kUnpackedBytes / (p.in * 2) / 8 * 8));
      const ArenaScope scope(ctx.arena);
      Packed halves;
      halves.in = halves.stride = p.in;
      void* data = ctx.arena.take(static_cast<size_t>(piece * p.in) * 2);
      halves.low = data;
      for (int64_t row = 0; row < p.out && !ctx.dry_run; row += piece) {
        halves.out = std::min(piece, p.out - row);
        unpack(rows_of(p, row, halves.out), data, stream_of(ctx));
        multiply(ctx, halves, x, columns(y, column + row, halves.out), add);
      }
    }
    column += p.out;
  }
}

bool try_few_rows(ExecContext& ctx, const Norm* norm, const CudaLinear& w, Epilogue epilogue,
                  const Tensor& x, const Tensor& y) {
  if (card(ctx).deterministic() || !few_rows_fit(x.rows, w.in)) return false;
  if (norm != nullptr && x.rows > 1) {
    const ArenaScope scope(ctx.arena);
    const Tensor normed = ctx.tensor(x.rows, (x.cols + 7) / 8 * 8, DType::kF16).columns(0, x.cols);
    if (!ctx.dry_run) {
      norm_rows(norm_args(norm), rows(x), rows(normed), false, stream_of(ctx));
    }
    return try_few_rows(ctx, nullptr, w, epilogue, normed, y);
  }
  const NormArgs args = norm_args(norm);
  if (is_gate(epilogue)) {
    const std::optional<GateUp> both = gate_and_up(w);
    if (!both) return false;
    if (!ctx.dry_run) {
      few_rows(both->gate, &both->up, w.bias_data(), epilogue, args, rows(x), rows(y),
               stream_of(ctx));
    }
    return true;
  }
  int64_t column = 0;
  for (const Matrix& part : w.parts) {
    const float* bias = w.bias_data() == nullptr ? nullptr : w.bias_data() + column;
    if (!ctx.dry_run) {
      few_rows(part.packed, nullptr, bias, epilogue, args, rows(x),
               columns(rows(y), column, part.packed.out), stream_of(ctx));
    }
    column += part.packed.out;
  }
  return true;
}

}  // namespace

const char* linear_reason(const ExecContext& ctx, const Linear& w, const Tensor& x) {
  if (card(ctx).deterministic()) return "--deterministic: one tile for any number of rows";
  return few_rows_fit(x.rows, w.in()) ? "few rows: every weight is read once"
                                      : "many rows: cuBLASLt";
}

void linear(ExecContext& ctx, const Norm* norm, const Linear& linear, Epilogue epilogue,
            const Tensor& x, const Tensor& y) {
  const CudaLinear& w = weights_of(linear);
  if (try_few_rows(ctx, norm, w, epilogue, x, y)) return;
  const ArenaScope scope(ctx.arena);

  // Rows of W are padded to 8 columns; x is too, so that both read the same zeros.
  const int64_t stride = w.parts.front().packed.stride;
  Rows xs = rows(x);
  if (norm != nullptr || !xs.is_half || xs.stride % 8 != 0 || stride != w.in) {
    Tensor halves = ctx.tensor(x.rows, stride, DType::kF16);
    Rows to = rows(halves);
    if (!ctx.dry_run) {
      if (stride != w.in)
        clear(halves.data, static_cast<size_t>(x.rows * stride) * 2, stream_of(ctx));
      to.cols = w.in;
      norm_rows(norm_args(norm), xs, to, false, stream_of(ctx));
    }
    xs = rows(halves);
  }
  if (is_gate(epilogue)) {
    const Tensor both = ctx.tensor(x.rows, w.out, DType::kF16);
    multiply_parts(ctx, w, xs, rows(both), false);
    if (!ctx.dry_run) gate_rows(epilogue, w.bias_data(), rows(both), rows(y), stream_of(ctx));
    return;
  }
  multiply_parts(ctx, w, xs, rows(y), epilogue == Epilogue::kAdd);
  if (w.bias_data() != nullptr && !ctx.dry_run) add_bias(w.bias_data(), rows(y), stream_of(ctx));
}

}  // namespace tinyvllm::ops::cuda
