// A product with weights: activations are normalised and quantized once, then threads take groups
// of 8 rows. A group's weights stay in the L1 cache while tokens pass by in chunks.
#include <algorithm>
#include <array>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/linear_weights.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int64_t kTokenChunk = 64;      // tokens of a tile's results: 2 KB
constexpr int64_t kTasksPerThread = 8;   // enough that the slowest thread's last task is short
constexpr int64_t kMinTaskWork = 16384;  // products below which a task costs more than it brings

// The input in the forms that the parts' kernels read.
struct Activations {
  const float* rows = nullptr;
  int64_t row_stride = 0;  // elements
  const Q8Block* blocks = nullptr;
  int64_t blocks_per_row = 0;
};

const LinearWeights& weights_of(const Linear& w) {
  return static_cast<const LinearWeights&>(w.weights());
}

template <class Predicate>
bool any_part(const LinearWeights& w, Predicate&& predicate) {
  return std::any_of(w.parts.begin(), w.parts.end(), predicate);
}

// Normalises and quantizes, as far as wanted; returns nothing usable in a dry run.
Activations prepare(ExecContext& ctx, const Norm* norm, const LinearWeights& w, const Tensor& x) {
  const bool wants_blocks = any_part(w, [](const LinearPart& p) { return p.interleaved; });
  const bool wants_rows = any_part(w, [](const LinearPart& p) { return !p.interleaved; });
  Activations a{static_cast<const float*>(x.data), x.stride, nullptr, x.cols / 32};
  Tensor normed;
  if (norm != nullptr) normed = ctx.tensor(wants_rows ? x.rows : ctx.pool.size(), x.cols);
  Q8Block* blocks = nullptr;
  if (wants_blocks) {
    const auto count = static_cast<size_t>(x.rows * a.blocks_per_row);
    blocks = static_cast<Q8Block*>(ctx.arena.take(count * sizeof(Q8Block)));
  }
  if (ctx.dry_run || (norm == nullptr && !wants_blocks)) return a;

  const Kernels& k = kernels(ctx.device);
  ctx.pool.parallel_for(x.rows, [&](int64_t r, int thread) {
    const float* row = x.f32() + r * x.stride;
    if (norm != nullptr) {
      float* to = normed.f32() + (wants_rows ? r : thread) * normed.stride;
      norm_row(ctx, *norm, row, to);
      row = to;
    }
    if (wants_blocks) k.quantize_q8(row, x.cols, blocks + r * a.blocks_per_row);
  });
  a.blocks = blocks;
  if (norm != nullptr) {
    a.rows = normed.f32();
    a.row_stride = normed.stride;
  }
  return a;
}

// tile[t, 0…7] = rows of one group times tokens [token, token + tokens)
void multiply(const LinearPart& part, int64_t k, int64_t group, const Activations& a, int64_t token,
              int64_t tokens, float* tile, int64_t stride) {
  LinearTile t{};
  t.weights = part.data + group * part.group_bytes;
  t.row_bytes = part.group_bytes / kRowGroup;
  t.rows = static_cast<int>(std::min<int64_t>(kRowGroup, part.rows - group * kRowGroup));
  t.k = k;
  if (part.interleaved) {
    t.x = a.blocks + token * a.blocks_per_row;
    t.x_stride = a.blocks_per_row * static_cast<int64_t>(sizeof(Q8Block));
  } else {
    t.x = a.rows + token * a.row_stride;
    t.x_stride = a.row_stride * static_cast<int64_t>(sizeof(float));
  }
  t.tokens = tokens;
  t.y = tile;
  t.y_stride = stride;
  part.kernel(t);
}

// y (+)= tile + bias
void finish(const float* tile, const float* bias, int64_t tokens, int64_t rows, bool add, float* y,
            int64_t y_stride) {
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      float value = tile[t * kRowGroup + r];
      if (bias != nullptr) value += bias[r];
      y[t * y_stride + r] = add ? y[t * y_stride + r] + value : value;
    }
  }
}

// Calls body(first group, last group) from all threads over [0, groups).
template <class Body>
void for_groups(ExecContext& ctx, int64_t groups, int64_t work_per_group, Body&& body) {
  const int64_t even =
      (groups + ctx.pool.size() * kTasksPerThread - 1) / (ctx.pool.size() * kTasksPerThread);
  const int64_t chunk = std::max(even, kMinTaskWork / std::max<int64_t>(1, work_per_group));
  ctx.pool.parallel_for((groups + chunk - 1) / chunk, [&](int64_t task, int) {
    body(task * chunk, std::min(groups, (task + 1) * chunk));
  });
}

void multiply_part(ExecContext& ctx, const LinearWeights& w, const LinearPart& part,
                   const Activations& a, bool add, const Tensor& y) {
  const auto* bias = static_cast<const float*>(w.bias.data());
  if (bias != nullptr) bias += part.row_begin;
  for_groups(ctx, part.groups(), kRowGroup * w.in * y.rows, [&](int64_t begin, int64_t end) {
    std::array<float, kTokenChunk * kRowGroup> tile;
    for (int64_t token = 0; token < y.rows; token += kTokenChunk) {
      const int64_t tokens = std::min(kTokenChunk, y.rows - token);
      for (int64_t g = begin; g < end; ++g) {
        multiply(part, w.in, g, a, token, tokens, tile.data(), kRowGroup);
        const int64_t row = g * kRowGroup;
        finish(tile.data(), bias == nullptr ? nullptr : bias + row, tokens,
               std::min<int64_t>(kRowGroup, part.rows - row), add,
               y.f32() + token * y.stride + part.row_begin + row, y.stride);
      }
    }
  });
}

// The part whose group begins at that row of the result, or null.
const LinearPart* part_at(const LinearWeights& w, int64_t row) {
  for (const LinearPart& part : w.parts) {
    const int64_t inside = row - part.row_begin;
    if (inside >= 0 && inside < part.rows) return inside % kRowGroup == 0 ? &part : nullptr;
  }
  return nullptr;
}

// Whether 8 columns of G and of U can be computed side by side: groups of both begin together.
bool halves_align(const LinearWeights& w) {
  const int64_t half = w.out / 2;
  for (int64_t row = 0; row < half; row += kRowGroup) {
    const LinearPart* g = part_at(w, row);
    const LinearPart* u = part_at(w, half + row);
    const int64_t rows = std::min<int64_t>(kRowGroup, half - row);
    if (g == nullptr || u == nullptr || row + rows > g->row_begin + g->rows ||
        half + row + rows > u->row_begin + u->rows) {
      return false;
    }
  }
  return true;
}

void gate_rows(GateKernel gate, const float* g, const float* u, int64_t stride, int64_t tokens,
               int64_t rows, float* y, int64_t y_stride) {
  for (int64_t t = 0; t < tokens; ++t) gate(g + t * stride, u + t * stride, rows, y + t * y_stride);
}

void multiply_gated(ExecContext& ctx, const LinearWeights& w, const Activations& a, GateKernel gate,
                    const Tensor& y) {
  const int64_t half = w.out / 2;
  const auto* bias = static_cast<const float*>(w.bias.data());
  const int64_t groups = (half + kRowGroup - 1) / kRowGroup;
  for_groups(ctx, groups, 2 * kRowGroup * w.in * y.rows, [&](int64_t begin, int64_t end) {
    std::array<float, kTokenChunk * kRowGroup> tiles[2];
    for (int64_t token = 0; token < y.rows; token += kTokenChunk) {
      const int64_t tokens = std::min(kTokenChunk, y.rows - token);
      for (int64_t g = begin; g < end; ++g) {
        const int64_t rows = std::min<int64_t>(kRowGroup, half - g * kRowGroup);
        for (int which = 0; which < 2; ++which) {
          const int64_t row = which * half + g * kRowGroup;
          const LinearPart& part = *part_at(w, row);
          float* tile = tiles[which].data();
          multiply(part, w.in, (row - part.row_begin) / kRowGroup, a, token, tokens, tile,
                   kRowGroup);
          if (bias != nullptr) finish(tile, bias + row, tokens, rows, false, tile, kRowGroup);
        }
        gate_rows(gate, tiles[0].data(), tiles[1].data(), kRowGroup, tokens, rows,
                  y.f32() + token * y.stride + g * kRowGroup, y.stride);
      }
    }
  });
}

}  // namespace

void linear(ExecContext& ctx, const Norm* norm, const Linear& w, Epilogue epilogue, const Tensor& x,
            const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const LinearWeights& weights = weights_of(w);
  const Activations a = prepare(ctx, norm, weights, x);
  if (epilogue == Epilogue::kStore || epilogue == Epilogue::kAdd) {
    if (ctx.dry_run) return;
    for (const LinearPart& part : weights.parts) {
      multiply_part(ctx, weights, part, a, epilogue == Epilogue::kAdd, y);
    }
    return;
  }
  const Kernels& k = kernels(ctx.device);
  const GateKernel gate = epilogue == Epilogue::kSiluGate ? k.silu_gate : k.gelu_gate;
  if (halves_align(weights)) {
    if (!ctx.dry_run) multiply_gated(ctx, weights, a, gate, y);
    return;
  }
  const Tensor both = ctx.tensor(y.rows, w.out());
  if (ctx.dry_run) return;
  for (const LinearPart& part : weights.parts) multiply_part(ctx, weights, part, a, false, both);
  ctx.pool.parallel_for(y.rows, [&](int64_t r, int) {
    const float* row = both.f32() + r * both.stride;
    gate(row, row + y.cols, y.cols, y.f32() + r * y.stride);
  });
}

}  // namespace tinyvllm::ops::cpu
